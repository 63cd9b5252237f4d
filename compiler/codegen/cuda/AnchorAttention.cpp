//===- AnchorAttention.cpp - calls of the attention templates -------------===//
#include "compiler/codegen/cuda/AnchorPrinter.h"

using namespace mlir;
using llvm::alignTo;
using llvm::divideCeil;

namespace ogc::codegen {

FailureOr<PulledOperands> AnchorPrinter::printAttentionOperands(kern::AttentionOp op, bool pullsQuery) {
  auto elementOf = [](Value tensor) {
    return [tensor](KernelBody &body, ArrayRef<Value> at) { return body.getEmitter().emit(tensor, at); };
  };
  auto query = elementOf(op.getQuery()), newKey = elementOf(op.getNewKey()), newValue = elementOf(op.getNewValue());
  auto position = [&](KernelBody &body, ArrayRef<Value> at) { return body.getEmitter().emitPosition(op, at[0]); };
  SmallVector<PulledElement> elements;
  if (pullsQuery)
    elements.push_back({"query", 4, query});
  if (op.getNewKey()) {
    elements.push_back({"newKey", 4, newKey});
    elements.push_back({"newValue", 4, newValue});
    elements.push_back({"position", 1, position});
  }
  return printPulledOperands(kernel, op, elements);
}

AttentionProblem AnchorPrinter::problemOf(kern::AttentionOp op) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey());
  return {query[1] * (query[2] / key[2]), key[0] * key[2],  key[1], query[3], shapeOf(op.getValue())[3],
          elementBytes(op.getQuery()),    query[2] / key[2]};
}

int64_t AnchorPrinter::newRowsOf(kern::AttentionOp op) { return op.getNewKey() ? shapeOf(op.getNewKey())[1] : 0; }

/// A dimension of extent one needs a stride that a tensor map takes all the same: that of a dense tensor.
static TensorMap rowsOfHeads(const Operand &operand, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides, Type element,
                             std::array<int64_t, 2> box) {
  int64_t b = shape[0], s = shape[1], h = shape[2], d = shape[3];
  int64_t head = h == 1 ? alignTo(d, 8) : strides[2], row = s == 1 ? head * h : strides[1];
  return {operand.argument,       element, operand.view.offset, {d, h, s, b}, {head, row, b == 1 ? row * s : strides[0]},
          {64, box[0], box[1], 1}};
}

void AnchorPrinter::printAttentionMaps(kern::AttentionOp op, ArrayRef<const Operand *> views, const AttentionProblem &problem,
                                       int64_t rows, int64_t keyRows, StringRef form, const std::string &bias) {
  Type element = cast<RankedTensorType>(op.getQuery().getType()).getElementType();
  auto addMap = [&](const Operand &operand, Value value, std::array<int64_t, 2> box) {
    maps.push_back(rowsOfHeads(operand, shapeOf(value), operand.view.strides, element, box));
  };
  addMap(*views[0], op.getQuery(), {problem.heads, rows / problem.heads});
  addMap(*views[1], op.getKey(), {1, keyRows});
  addMap(*views[2], op.getValue(), {1, keyRows});
  call = "ogc::" + form.str() + "<" + kernel.getSymName().str() + "_Config>(m0, m1, m2, " + bias + ", " +
         types.literal(op.getScaleAttr()) + ", " + epilogue.construct + ");";
}

bool AnchorPrinter::printMappedAttention(kern::AttentionOp op, ArrayRef<const Operand *> views, const AttentionProblem &problem,
                                         const std::string &name, const std::string &bias,
                                         llvm::function_ref<void(Config &)> setShared) {
  std::optional<MappedAttentionChoice> choice = chooseMappedAttention(problem, arch, "mapped_attention " + name, tuning);
  if (!choice)
    return false;
  Config out(kernel.getSymName().str() + "_Config", "AttentionDefaults", elementName(op.getQuery()));
  int64_t sharedBytes = choice->sharedBytes(problem);
  setMembers(
      out, {{"WQ", choice->warpsQ}, {"WT", choice->warpsT}, {"SharedBytes", sharedBytes}, {"Trigger", int64_t(choice->trigger)}});
  setShared(out);
  printAttentionMaps(op, views, problem, choice->blockRows(), alignTo(problem.keys, 16), "mappedAttention", bias);
  setLaunch(divideCeil(problem.rows, choice->blockRows()) * problem.groups, choice->threads(), 1, sharedBytes, *choice);
  header = "ogc/mapped_attention.cuh";
  config = out.str();
  return true;
}

bool AnchorPrinter::printWideAttention(kern::AttentionOp op, ArrayRef<const Operand *> views, const AttentionProblem &problem,
                                       const std::string &name, const std::string &bias,
                                       llvm::function_ref<void(Config &)> setShared) {
  std::optional<WideAttentionChoice> choice = chooseWideAttention(problem, arch, "wide_attention " + name, tuning);
  if (!choice)
    return false;
  Config out(kernel.getSymName().str() + "_Config", "AttentionDefaults", elementName(op.getQuery()));
  int64_t sharedBytes = choice->sharedBytes(problem);
  setMembers(out, {{"WQ", choice->groupsQ},
                   {"WT", choice->groupsT},
                   {"BT", choice->bt},
                   {"Stages", choice->stages},
                   {"Split", choice->split},
                   {"SharedBytes", sharedBytes},
                   {"Trigger", int64_t(choice->trigger)}});
  setShared(out);
  printAttentionMaps(op, views, problem, choice->blockRows(), choice->bt, "wideAttention", bias);
  setLaunch(choice->split * divideCeil(problem.rows, choice->blockRows()) * problem.groups, choice->threads(), choice->split,
            sharedBytes, *choice);
  header = "ogc/wide_attention.cuh";
  config = out.str();
  return true;
}

void AnchorPrinter::setDecode(Config &out, const AttentionProblem &problem, int64_t newRows, bool cacheConstant,
                              const std::string &name) {
  DecodeChoice choice = chooseDecode(problem, newRows, arch, "decode " + name, tuning);
  int64_t sharedBytes = choice.sharedBytes(problem, newRows);
  setMembers(out, {{"Warps", choice.warps},
                   {"Split", choice.split},
                   {"SharedBytes", sharedBytes},
                   {"CacheConstant", cacheConstant},
                   {"Trigger", int64_t(choice.trigger)}});
  setLaunch(choice.split * problem.groups, choice.threads(problem, newRows), choice.split, sharedBytes, choice);
}

bool AnchorPrinter::setAttention(Config &out, const AttentionProblem &problem, const std::string &name) {
  std::optional<AttentionChoice> choice = chooseAttention(problem, arch, "attention " + name, tuning);
  if (!choice)
    return false;
  int64_t sharedBytes = choice->sharedBytes(problem);
  setMembers(out, {{"WQ", choice->warpsQ},
                   {"WT", choice->warpsT},
                   {"BT", choice->bt},
                   {"Stages", choice->stages},
                   {"Split", choice->split},
                   {"SharedBytes", sharedBytes},
                   {"Trigger", int64_t(choice->trigger)}});
  setLaunch(choice->split * divideCeil(problem.rows, choice->blockRows()) * problem.groups, choice->threads(), choice->split,
            sharedBytes, *choice);
  return true;
}

LogicalResult AnchorPrinter::printAttention(kern::AttentionOp op) {
  std::optional<Operand> q = resolve(op.getQuery()), k = resolve(resolveStoredView(op.getKey())),
                         v = resolve(resolveStoredView(op.getValue())), bias;
  if (op.getBias())
    bias = resolve(op.getBias());
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey()), value = shapeOf(op.getValue());
  int64_t newRows = newRowsOf(op);
  if (!k || !v || elementName(k->argument) != elementName(v->argument) || (op.getBias() && !bias) || query[3] > 256 ||
      value[3] > 256)
    return unfit();
  // Strides of a dimension of extent one count as zero: a repeated bias, or an index that is always zero.
  auto stridesOf = [](const Operand &operand, ArrayRef<int64_t> shape, size_t dims) {
    SmallVector<int64_t> s(operand.view.strides);
    for (size_t dim = 0; dim < dims; ++dim)
      s[dim] = shape[dim] == 1 ? 0 : s[dim];
    return s;
  };
  SmallVector<int64_t> keyStrides = stridesOf(*k, key, 3), valueStrides = stridesOf(*v, value, 3);
  int vecK = k->vector(keyStrides[3], ArrayRef(keyStrides).take_front(3)),
      vecV = v->vector(valueStrides[3], ArrayRef(valueStrides).take_front(3));
  AttentionProblem problem = problemOf(op);
  std::string name = productName(op.getQuery(), op.getMath()) + " " +
                     join({problem.rows, problem.groups, problem.keys, problem.d, problem.dv}) +
                     (op.getCausal() ? " causal" : "") + (bias ? " bias" : "") + (newRows ? " cache" : "");
  bool isDecode = vecK * k->bytes == 16 && vecV * v->bytes == 16 && takesDecode(problem, newRows, arch);
  auto setStrides = [&](Config &out, StringRef prefix, ArrayRef<StringRef> names, ArrayRef<int64_t> strides) {
    for (auto [name, stride] : llvm::zip_equal(names, strides))
      out.set((prefix + name).str(), stride);
  };
  auto setShared = [&](Config &out) { // what all forms have
    out.use("BiasElement", bias ? elementName(op.getBias()) : elementName(op.getQuery()));
    setMembers(out, {{"B", query[0]},
                     {"S", query[1]},
                     {"T", key[1]},
                     {"H", query[2]},
                     {"HK", key[2]},
                     {"D", query[3]},
                     {"DV", value[3]},
                     {"Causal", op.getCausal()},
                     {"V", epilogue.lanes}});
    if (bias) {
      out.set("HasBias", 1);
      SmallVector<int64_t> strides = stridesOf(*bias, shapeOf(op.getBias()), 4);
      setStrides(out, "BiasS", {"b", "h", "s", "t"}, strides);
      out.set("VecBias", std::min(2, bias->vector(strides[3], ArrayRef(strides).take_front(3), {key[1]})));
    }
  };
  std::string none = "(const " + elementName(op.getQuery()) + " *)nullptr", biasPointer = bias ? bias->pointer() : none;
  auto isMappable = [](const Operand &operand, ArrayRef<int64_t> shape) {
    return operand.isMappable(operand.view.strides[3], operand.movingStrides(shape));
  };
  problem.isMappable = q && newRows == 0 && elementName(k->argument) == elementName(op.getQuery()) && isMappable(*q, query) &&
                       isMappable(*k, key) && isMappable(*v, value);
  problem.hasBias = bias.has_value(), problem.isCausal = op.getCausal();
  problem.hasPositiveScale = op.getScale().convertToFloat() >= std::numeric_limits<float>::min();
  auto printMapped = [&] { return printMappedAttention(op, {&*q, &*k, &*v}, problem, name, biasPointer, setShared); };
  auto printWide = [&] { return printWideAttention(op, {&*q, &*k, &*v}, problem, name, biasPointer, setShared); };
  if (problem.isMappable && !isDecode &&
      (prefersWideAttention(problem) ? printWide() || printMapped() : printMapped() || printWide()))
    return success();
  std::string form = isDecode ? "decode" : "attention";
  Config out(kernel.getSymName().str() + "_Config", isDecode ? "DecodeDefaults" : "AttentionDefaults",
             elementName(op.getQuery()));
  if (isDecode)
    setDecode(out, problem, newRows, constant[k->argument] && constant[v->argument], name);
  else if (!setAttention(out, problem, name))
    return unfit();
  FailureOr<PulledOperands> pulled = printAttentionOperands(op, /*pullsQuery=*/!q);
  if (failed(pulled))
    return failure();
  operands = pulled->functor;
  setShared(out);
  setMembers(out, {{"PulledQuery", !q},
                   {"NewRows", newRows},
                   {"Products", problem.bytes == 4 && op.getMath() == kern::MathMode::IEEE ? 3 : 1}});
  SmallVector<int64_t> queryStrides = q ? stridesOf(*q, query, 3) : SmallVector<int64_t>(4);
  setStrides(out, "QS", {"b", "s", "h", "d"}, queryStrides);
  out.set("VecQ", q ? q->vector(queryStrides[3], ArrayRef(queryStrides).take_front(3)) : 1);
  setStrides(out, "KS", {"b", "t", "h", "d"}, keyStrides);
  setStrides(out, "VS", {"b", "t", "h", "d"}, valueStrides);
  setMembers(out, {{"VecK", vecK}, {"VecV", vecV}});
  header = "ogc/" + form + ".cuh";
  config = out.str();
  call = "ogc::" + form + "<" + kernel.getSymName().str() + "_Config>(" + (q ? q->pointer() : none) + ", " + k->pointer() + ", " +
         v->pointer() + ", " + biasPointer + ", " + types.literal(op.getScaleAttr()) + ", " + pulled->construct + ", " +
         epilogue.construct + ");";
  return success();
}

} // namespace ogc::codegen
