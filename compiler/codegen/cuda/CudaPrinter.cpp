//===- CudaPrinter.cpp - scalar IR as CUDA C++ text -----------------------===//
#include "compiler/codegen/cuda/CudaPrinter.h"

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::codegen {

std::string CudaPrinter::nameOf(Value value) {
  auto it = names.find(value);
  // Dominance makes every operand printed before its use; a missing one is a wrong call of ours, and the compiler's log will show
  // it.
  return it == names.end() ? "undefined_value" : it->second;
}

LogicalResult CudaPrinter::unsupported(Operation *op, StringRef why) {
  InFlightDiagnostic diag = mlir::emitError(op->getLoc());
  diag << "'" << op->getName() << "' has no CUDA form";
  if (op->getNumResults())
    diag << " for type " << op->getResult(0).getType();
  if (!why.empty())
    diag << ": " << why;
  return diag << " (ONNX node " << nodeNames(op->getLoc()) << ")";
}

LogicalResult CudaPrinter::define(Value result, const std::string &expression) {
  std::string type = types.name(result.getType());
  if (type.empty())
    return unsupported(result.getDefiningOp());
  std::string name = fresh();
  line() << "const " << type << " " << name << " = " << expression << ";\n";
  names[result] = name;
  return success();
}

LogicalResult CudaPrinter::declare(ValueRange variables, ValueRange inits) {
  for (auto [i, variable] : llvm::enumerate(variables)) {
    std::string type = types.name(variable.getType());
    if (type.empty())
      return mlir::emitError(variable.getLoc()) << "a variable of type " << variable.getType() << " has no CUDA form (ONNX node "
                                                << nodeNames(variable.getLoc()) << ")";
    std::string name = fresh();
    line() << type << " " << name;
    if (!inits.empty())
      os << " = " << nameOf(inits[i]);
    os << ";\n";
    names[variable] = name;
  }
  return success();
}

void CudaPrinter::assign(ValueRange variables, ValueRange values) {
  SmallVector<std::string> targets, sources;
  for (auto [variable, value] : llvm::zip_equal(variables, values)) {
    targets.push_back(nameOf(variable));
    sources.push_back(nameOf(value));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    // A target assigned earlier no longer holds its old value.
    if (!llvm::is_contained(ArrayRef(targets).take_front(i), sources[i]))
      continue;
    std::string copy = fresh();
    line() << "const " << types.name(values[i].getType()) << " " << copy << " = " << sources[i] << ";\n";
    sources[i] = copy;
  }
  for (auto [target, source] : llvm::zip_equal(targets, sources))
    if (target != source)
      line() << target << " = " << source << ";\n";
}

LogicalResult CudaPrinter::printBlock(Block &block) {
  bool ok = true;
  for (Operation &op : block.without_terminator())
    ok &= succeeded(printOp(&op));
  return success(ok);
}

LogicalResult CudaPrinter::printOp(Operation *op) {
  auto dimension = [](gpu::Dimension d) { return "." + stringifyDimension(d).str(); };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<arith::ConstantOp>([&](auto) { return printConstant(op); })
      .Case<scf::ForOp>([&](auto loop) { return printFor(loop); })
      .Case<scf::IfOp>([&](auto branch) { return printIf(branch); })
      .Case<scf::WhileOp>([&](auto loop) { return printWhile(loop); })
      .Case<memref::LoadOp>([&](auto load) { return printLoad(op, load.getMemRef(), load.getIndices()); })
      .Case<vector::LoadOp>([&](auto load) { return printLoad(op, load.getBase(), load.getIndices()); })
      .Case<memref::StoreOp>([&](auto s) { return printStore(s.getValueToStore(), s.getMemRef(), s.getIndices()); })
      .Case<vector::StoreOp>([&](auto s) { return printStore(s.getValueToStore(), s.getBase(), s.getIndices()); })
      .Case<memref::AllocaOp>([&](auto) { return printAlloca(op); })
      .Case<vector::ExtractOp, vector::FromElementsOp>([&](auto) { return printVectorElements(op); })
      .Case<gpu::ThreadIdOp>(
          [&](auto id) { return define(id, "(" + types.name(id.getType()) + ")threadIdx" + dimension(id.getDimension())); })
      .Case<gpu::BlockIdOp>(
          [&](auto id) { return define(id, "(" + types.name(id.getType()) + ")blockIdx" + dimension(id.getDimension())); })
      .Case<gpu::BarrierOp>([&](auto) {
        if (op->hasAttr("ogc.cluster"))
          line() << "ogc::clusterArrive();\n", line() << "ogc::clusterWait();\n";
        else
          line() << "__syncthreads();\n";
        return success();
      })
      .Case<kern::StoreStatisticsOp>([&](auto) { return printStoreStatistics(op); })
      .Case<gpu::ShuffleOp>([&](auto) { return printShuffle(op); })
      .Default([&](Operation *) -> LogicalResult {
        SmallVector<std::string> operands;
        for (Value operand : op->getOperands())
          operands.push_back(nameOf(operand));
        std::string expression = scalarExpression(op, operands, types);
        if (expression.empty())
          return unsupported(op);
        return define(op->getResult(0), expression);
      });
}

LogicalResult CudaPrinter::printConstant(Operation *op) {
  std::string literal = types.literal(cast<arith::ConstantOp>(op).getValue());
  if (literal.empty())
    return unsupported(op);
  names[op->getResult(0)] = literal;
  return success();
}

LogicalResult CudaPrinter::printFor(scf::ForOp op) {
  if (failed(declare(op.getResults(), op.getInitArgs())))
    return failure();
  for (auto [argument, result] : llvm::zip_equal(op.getRegionIterArgs(), op.getResults()))
    names[argument] = nameOf(result);
  std::string iv = fresh(), type = types.name(op.getInductionVar().getType());
  names[op.getInductionVar()] = iv;
  if (auto unroll = op->getAttrOfType<IntegerAttr>("ogc.unroll")) {
    line() << "#pragma unroll";
    if (unroll.getInt() > 0)
      os << " " << unroll.getInt();
    os << "\n";
  }
  line() << "for (" << type << " " << iv << " = " << nameOf(op.getLowerBound()) << "; " << iv << " < "
         << nameOf(op.getUpperBound()) << "; " << iv << " += " << nameOf(op.getStep()) << ") {\n";
  ++indent;
  LogicalResult printed = printBlock(*op.getBody());
  assign(op.getResults(), op.getBody()->getTerminator()->getOperands());
  --indent;
  line() << "}\n";
  return printed;
}

LogicalResult CudaPrinter::printIf(scf::IfOp op) {
  if (failed(declare(op.getResults(), {})))
    return failure();
  line() << "if (" << nameOf(op.getCondition()) << ") {\n";
  LogicalResult printed = success();
  auto branch = [&](Block *block) {
    ++indent;
    if (failed(printBlock(*block)))
      printed = failure();
    assign(op.getResults(), block->getTerminator()->getOperands());
    --indent;
  };
  branch(op.thenBlock());
  if (op.elseBlock()) {
    line() << "} else {\n";
    branch(op.elseBlock());
  }
  line() << "}\n";
  return printed;
}

LogicalResult CudaPrinter::printWhile(scf::WhileOp op) {
  if (failed(declare(op.getBeforeArguments(), op.getInits())) || failed(declare(op.getResults(), {})))
    return failure();
  for (auto [argument, result] : llvm::zip_equal(op.getAfterArguments(), op.getResults()))
    names[argument] = nameOf(result);
  line() << "while (true) {\n";
  ++indent;
  LogicalResult before = printBlock(*op.getBeforeBody());
  assign(op.getResults(), op.getConditionOp().getArgs());
  line() << "if (!" << nameOf(op.getConditionOp().getCondition()) << ")\n";
  line() << "  break;\n";
  LogicalResult after = printBlock(*op.getAfterBody());
  assign(op.getBeforeArguments(), op.getYieldOp().getOperands());
  --indent;
  line() << "}\n";
  return success(succeeded(before) && succeeded(after));
}

namespace {

/// One term of an address: `base` (modulo `modulus` unless 0) times `stride`.
struct Term {
  Value index, base;
  int64_t modulus, stride;
};

} // namespace

/// Takes a remainder by a constant apart; any other value is its own base.
static std::pair<Value, int64_t> splitRemainder(Value index) {
  APInt modulus;
  if (auto rem = index.getDefiningOp<arith::RemUIOp>(); rem && matchPattern(rem.getRhs(), m_ConstantInt(&modulus)))
    return {rem.getLhs(), modulus.getSExtValue()};
  return {index, 0};
}

/// Terms of an access; digits of one number that meet again with the strides they were split by become that number, so that an
/// access in the order of the threads needs no division.
static SmallVector<Term> addressTerms(ValueRange indices, ArrayRef<int64_t> strides) {
  SmallVector<Term> terms; // from the innermost dimension outwards
  for (size_t i = indices.size(); i-- > 0;) {
    if (matchPattern(indices[i], m_Zero()))
      continue;
    auto [base, modulus] = splitRemainder(indices[i]);
    if (!terms.empty() && terms.back().modulus) {
      Term &inner = terms.back();
      APInt divisor;
      auto quotient = base.getDefiningOp<arith::DivUIOp>();
      if (quotient && quotient.getLhs() == inner.base && matchPattern(quotient.getRhs(), m_ConstantInt(&divisor)) &&
          divisor.getSExtValue() == inner.modulus && strides[i] == inner.modulus * inner.stride) {
        inner.modulus *= modulus;
        inner.index = {};
        continue;
      }
    }
    terms.push_back({indices[i], base, modulus, strides[i]});
  }
  return terms;
}

std::string CudaPrinter::address(Value buffer, ValueRange indices) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(cast<MemRefType>(buffer.getType()).getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(offset) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return "";
  std::string text = nameOf(buffer);
  if (offset)
    text += " + " + std::to_string(offset);
  SmallVector<Term> terms = addressTerms(indices, strides);
  for (const Term &term : llvm::reverse(terms)) {
    std::string name = term.index ? nameOf(term.index) : nameOf(term.base);
    if (!term.index && term.modulus)
      name = "(" + types.name(term.base.getType()) + ")((" + types.unsignedName(term.base.getType()) + ")" + name + " % " +
             std::to_string(term.modulus) + "u)";
    text += " + " + name;
    if (term.stride != 1)
      text += " * " + std::to_string(term.stride);
  }
  return text;
}

LogicalResult CudaPrinter::printLoad(Operation *op, Value buffer, ValueRange indices) {
  std::string at = address(buffer, indices);
  std::string element = types.name(cast<MemRefType>(buffer.getType()).getElementType());
  if (at.empty() || element.empty())
    return unsupported(op, "the buffer has a layout or element type without a CUDA form");
  if (auto vector = dyn_cast<VectorType>(op->getResult(0).getType())) {
    if (!readOnly.contains(buffer)) // what is updated in place is read like any memory
      return define(op->getResult(0), "*reinterpret_cast<const ogc::Vec<" + element + ", " +
                                          std::to_string(vector.getNumElements()) + "> *>(" + at + ")");
    return define(op->getResult(0), "ogc::loadVec<" + element + ", " + std::to_string(vector.getNumElements()) + ">(" + at + ")");
  }
  return define(op->getResult(0), readOnly.contains(buffer) ? "ogc::loadElement(" + at + ")" : "*(" + at + ")");
}

LogicalResult CudaPrinter::printStore(Value value, Value buffer, ValueRange indices) {
  std::string at = address(buffer, indices);
  if (at.empty())
    return mlir::emitError(value.getLoc()) << "a store into " << buffer.getType() << " has no CUDA form (ONNX node "
                                           << nodeNames(value.getLoc()) << ")";
  if (isa<VectorType>(value.getType()))
    line() << "ogc::storeVec(" << at << ", " << nameOf(value) << ");\n";
  else
    line() << "*(" << at << ") = " << nameOf(value) << ";\n";
  return success();
}

LogicalResult CudaPrinter::printAlloca(Operation *op) {
  auto type = cast<MemRefType>(op->getResult(0).getType());
  std::string element = types.name(type.getElementType());
  if (element.empty() || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return unsupported(op);
  auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(type.getMemorySpace());
  std::string name = fresh();
  line() << (space && space.getValue() == gpu::AddressSpace::Workgroup ? "__shared__ " : "") << element << " " << name << "["
         << type.getNumElements() << "];\n";
  names[op->getResult(0)] = name;
  return success();
}

LogicalResult CudaPrinter::printVectorElements(Operation *op) {
  if (auto build = dyn_cast<vector::FromElementsOp>(op)) {
    std::string text = types.name(build.getType()) + "{{";
    llvm::interleave(build.getElements(), [&](Value v) { text += nameOf(v); }, [&] { text += ", "; });
    return define(build, text + "}}");
  }
  auto extract = cast<vector::ExtractOp>(op);
  if (extract.getStaticPosition().size() != 1 || extract.hasDynamicPosition())
    return unsupported(op);
  names[extract] = nameOf(extract.getSource()) + ".v[" + std::to_string(extract.getStaticPosition()[0]) + "]";
  return success();
}

LogicalResult CudaPrinter::printStoreStatistics(Operation *store) {
  auto op = cast<kern::StoreStatisticsOp>(store);
  std::string elements;
  llvm::interleave(op.getElements(), [&](Value v) { elements += nameOf(v); }, [&] { elements += ", "; });
  line() << "ogc::storeStatistics<" << kern::RowStatisticsOp::width << ", " << op.getElements().size() << ">("
         << address(op.getMeans(), op.getPosition()) << ", " << address(op.getSquares(), op.getPosition()) << ", {" << elements
         << "});\n";
  return success();
}

LogicalResult CudaPrinter::printShuffle(Operation *op) {
  auto shuffle = cast<gpu::ShuffleOp>(op);
  StringRef function;
  switch (shuffle.getMode()) {
  case gpu::ShuffleMode::XOR:
    function = "__shfl_xor_sync";
    break;
  case gpu::ShuffleMode::DOWN:
    function = "__shfl_down_sync";
    break;
  case gpu::ShuffleMode::UP:
    function = "__shfl_up_sync";
    break;
  case gpu::ShuffleMode::IDX:
    function = "__shfl_sync";
    break;
  }
  unsigned bits = types.width(shuffle.getValue().getType());
  if (bits != 32 && bits != 64)
    return unsupported(op, "only 32 and 64 bit values can be shuffled");
  if (!shuffle.getValid().use_empty())
    return unsupported(op, "the validity result has no CUDA form");
  return define(shuffle.getShuffleResult(), (function + "(0xffffffffu, " + nameOf(shuffle.getValue()) + ", " +
                                             nameOf(shuffle.getOffset()) + ", " + nameOf(shuffle.getWidth()) + ")")
                                                .str());
}

} // namespace ogc::codegen
