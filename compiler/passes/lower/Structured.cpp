//===- Structured.cpp -----------------------------------------------------===//
#include "compiler/passes/lower/Structured.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ogc::lower {

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }
ArrayRef<int64_t> shapeOf(Value v) { return typeOf(v).getShape(); }
Type elementOf(Value v) { return typeOf(v).getElementType(); }

int64_t numElements(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

DenseElementsAttr getSplat(Value v) {
  DenseElementsAttr attr;
  if (matchPattern(v, m_Constant(&attr)) && attr && attr.isSplat())
    return attr;
  return {};
}

bool isInRange(int64_t axis, size_t rank) { return axis >= 0 && axis < static_cast<int64_t>(rank); }

Value empty(Builder &b, ArrayRef<int64_t> shape, Type element) { return tensor::EmptyOp::create(b, shape, element); }

Value filled(Builder &b, ArrayRef<int64_t> shape, Value scalar) {
  return linalg::FillOp::create(b, ValueRange{scalar}, ValueRange{empty(b, shape, scalar.getType())}).getResult(0);
}

Value constantTensor(Builder &b, DenseElementsAttr value) { return arith::ConstantOp::create(b, value); }

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Groups the dimensions of two shapes with equal products, as finely as possible. False when a shape has no elements.
static bool commonGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to, SmallVectorImpl<ReassociationIndices> &fromGroups,
                         SmallVectorImpl<ReassociationIndices> &toGroups) {
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    ReassociationIndices left{static_cast<int64_t>(i)}, right{static_cast<int64_t>(j)};
    int64_t leftSize = from[i++], rightSize = to[j++];
    while (leftSize != rightSize) {
      if (leftSize < rightSize && i < from.size()) {
        leftSize *= from[i];
        left.push_back(static_cast<int64_t>(i++));
      } else if (rightSize < leftSize && j < to.size()) {
        rightSize *= to[j];
        right.push_back(static_cast<int64_t>(j++));
      } else {
        return false;
      }
    }
    fromGroups.push_back(left);
    toGroups.push_back(right);
  }
  // What is left has extent one and joins the last group.
  for (; i < from.size(); ++i)
    fromGroups.back().push_back(static_cast<int64_t>(i));
  for (; j < to.size(); ++j)
    toGroups.back().push_back(static_cast<int64_t>(j));
  return true;
}

Value reshape(Builder &b, Value v, ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(v);
  if (type.getShape() == shape)
    return v;
  RankedTensorType result = RankedTensorType::get(shape, type.getElementType());
  if (DenseElementsAttr splat = getSplat(v))
    return constantTensor(b, splat.resizeSplat(result));
  if (numElements(shape) == 0)
    return empty(b, shape, type.getElementType());
  if (shape.empty() || type.getRank() == 0) {
    SmallVector<ReassociationIndices> none;
    if (shape.empty())
      return tensor::CollapseShapeOp::create(b, result, v, none);
    return tensor::ExpandShapeOp::create(b, result, v, none);
  }
  SmallVector<ReassociationIndices> fromGroups, toGroups;
  if (!commonGroups(type.getShape(), shape, fromGroups, toGroups)) {
    emitError(b.getLoc()) << "cannot reshape " << type << " to " << result;
    return empty(b, shape, type.getElementType());
  }
  if (fromGroups.size() != static_cast<size_t>(type.getRank())) {
    Shape middle;
    for (const ReassociationIndices &group : fromGroups) {
      int64_t size = 1;
      for (int64_t d : group)
        size *= type.getDimSize(d);
      middle.push_back(size);
    }
    v = tensor::CollapseShapeOp::create(b, RankedTensorType::get(middle, type.getElementType()), v, fromGroups);
  }
  if (toGroups.size() != shape.size())
    v = tensor::ExpandShapeOp::create(b, result, v, toGroups);
  return v;
}

/// Reports operands whose shapes cannot be; the lowering goes on with a stand-in, so that all such errors are found.
static Value impossible(Builder &b, const Twine &what, ArrayRef<int64_t> shape, Type element) {
  emitError(b.getLoc()) << what;
  return empty(b, llvm::map_to_vector(shape, [](int64_t extent) { return std::max<int64_t>(extent, 0); }), element);
}

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

Value transpose(Builder &b, Value v, ArrayRef<int64_t> permutation) {
  SmallVector<bool> seen(permutation.size());
  for (int64_t d : permutation)
    if (!isInRange(d, shapeOf(v).size()) || permutation.size() != shapeOf(v).size() || std::exchange(seen[d], true))
      return impossible(b, "cannot transpose " + textOf(v.getType()) + " by what is no permutation of its dimensions", shapeOf(v),
                        elementOf(v));
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, static_cast<int64_t>(permutation.size()))))
    return v;
  Shape shape;
  for (int64_t d : permutation)
    shape.push_back(shapeOf(v)[d]);
  if (DenseElementsAttr splat = getSplat(v))
    return constantTensor(b, splat.resizeSplat(RankedTensorType::get(shape, elementOf(v))));
  return linalg::TransposeOp::create(b, v, empty(b, shape, elementOf(v)), permutation)->getResult(0);
}

static SmallVector<OpFoldResult> indexAttrs(Builder &b, ArrayRef<int64_t> values) {
  return llvm::map_to_vector(values, [&](int64_t v) -> OpFoldResult { return b.getIndexAttr(v); });
}

Value slice(Builder &b, Value v, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  Shape ones(sizes.size(), 1);
  if (strides.empty())
    strides = ones;
  for (auto [offset, size, stride, extent] : llvm::zip(offsets, sizes, strides, shapeOf(v)))
    if (offset < 0 || size < 0 || stride < 1 || (size > 0 && (offset >= extent || size - 1 > (extent - 1 - offset) / stride)))
      return impossible(b, "cannot slice " + textOf(v.getType()) + " outside of its extents", sizes, elementOf(v));
  if (sizes == shapeOf(v) && llvm::all_of(strides, [](int64_t s) { return s == 1; }))
    return v;
  if (numElements(sizes) == 0)
    return empty(b, sizes, elementOf(v));
  return tensor::ExtractSliceOp::create(b, v, indexAttrs(b, offsets), indexAttrs(b, sizes), indexAttrs(b, strides));
}

Value pad(Builder &b, Value v, ArrayRef<int64_t> low, ArrayRef<int64_t> high, Value scalar) {
  auto isZero = [](int64_t p) { return p == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return v;
  Shape shape(shapeOf(v));
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] += low[i] + high[i];
  if (llvm::any_of(low, [](int64_t p) { return p < 0; }) || llvm::any_of(high, [](int64_t p) { return p < 0; }) ||
      llvm::any_of(shape, [](int64_t extent) { return extent < 0; }))
    return impossible(b, "cannot pad " + textOf(v.getType()) + " by less than nothing", shape, elementOf(v));
  auto result = RankedTensorType::get(shape, elementOf(v));
  return tensor::PadOp::create(b, result, v, indexAttrs(b, low), indexAttrs(b, high), scalar);
}

Value concat(Builder &b, int64_t axis, ArrayRef<Value> inputs) {
  Shape first(shapeOf(inputs.front()));
  for (Value v : inputs) {
    bool fits = shapeOf(v).size() == first.size() && isInRange(axis, first.size()) && elementOf(v) == elementOf(inputs.front());
    for (size_t d = 0; fits && d < first.size(); ++d)
      fits = static_cast<int64_t>(d) == axis || shapeOf(v)[d] == first[d];
    if (!fits)
      return impossible(b,
                        "cannot join " + textOf(inputs.front().getType()) + " and " + textOf(v.getType()) + " along dimension " +
                            Twine(axis),
                        first, elementOf(inputs.front()));
  }
  SmallVector<Value> parts = llvm::filter_to_vector(inputs, [](Value v) { return numElements(shapeOf(v)) != 0; });
  if (parts.empty()) {
    Shape shape(shapeOf(inputs.front()));
    for (Value v : inputs.drop_front())
      shape[axis] += shapeOf(v)[axis];
    return empty(b, shape, elementOf(inputs.front()));
  }
  return parts.size() == 1 ? parts.front() : tensor::ConcatOp::create(b, axis, parts).getResult();
}

//===----------------------------------------------------------------------===//
// Generics
//===----------------------------------------------------------------------===//

AffineMap broadcastMap(MLIRContext *context, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<AffineExpr> exprs;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i + to.size() < from.size()) { // more dimensions than the result: no index is right, and buildGeneric says so
      exprs.push_back(getAffineConstantExpr(-1, context));
      continue;
    }
    size_t d = i + to.size() - from.size();
    bool repeats = from[i] == 1 && to[d] != 1;
    exprs.push_back(repeats ? getAffineConstantExpr(0, context) : getAffineDimExpr(static_cast<unsigned>(d), context));
  }
  return AffineMap::get(static_cast<unsigned>(to.size()), 0, exprs, context);
}

/// True when the extents of all loops follow from the operands that are no splats and the destination: only then may the splats
/// go.
static bool splatsAreFree(Builder &b, Operand init, ArrayRef<Operand> operands) {
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands)
    if (!getSplat(operand.value))
      maps.push_back(operand.map);
  maps.push_back(init.map);
  return static_cast<bool>(inversePermutation(concatAffineMaps(maps, b.getContext())));
}

/// The operand that does not fit: one of another rank than its map, or one whose extent differs from that of the loop along it.
static std::optional<std::string> findMisfit(Operand init, ArrayRef<Operand> operands) {
  Shape extents(init.map.getNumDims(), -1);
  auto misfit = [&](const Operand &operand) {
    ArrayRef<int64_t> shape = shapeOf(operand.value);
    if (operand.map.getNumResults() != shape.size() || operand.map.getNumDims() != extents.size())
      return true;
    for (auto [expr, extent] : llvm::zip(operand.map.getResults(), shape)) {
      if (auto constant = dyn_cast<AffineConstantExpr>(expr); constant && !isInRange(constant.getValue(), extent))
        return extent != 0;
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        continue;
      int64_t &known = extents[dim.getPosition()];
      if (known >= 0 && known != extent)
        return true;
      known = extent;
    }
    return false;
  };
  if (misfit(init))
    return textOf(init.value.getType()) + " is no result of these operands";
  for (const Operand &operand : operands)
    if (misfit(operand))
      return "cannot broadcast " + textOf(operand.value.getType()) + " to " + textOf(init.value.getType());
  return std::nullopt;
}

/// Builds the generic: splat operands become constants of the body, `init` is the destination.
static Value buildGeneric(Builder &b, Operand init, bool readsInit, ArrayRef<Operand> operands, ArrayRef<IteratorType> iterators,
                          Body body, bool widen) {
  if (std::optional<std::string> misfit = findMisfit(init, operands))
    return impossible(b, *misfit, shapeOf(init.value), elementOf(init.value));
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  bool dropSplats = splatsAreFree(b, init, operands);
  for (const Operand &operand : operands) {
    if (dropSplats && getSplat(operand.value))
      continue;
    inputs.push_back(operand.value);
    maps.push_back(operand.map);
  }
  maps.push_back(init.map);
  Type element = elementOf(init.value);
  auto buildBody = [&](OpBuilder &nested, Location loc, ValueRange args) {
    Scalar s(nested, loc);
    SmallVector<Value> elements;
    size_t next = 0;
    for (const Operand &operand : operands) {
      Value v;
      if (DenseElementsAttr splat = dropSplats ? getSplat(operand.value) : DenseElementsAttr()) {
        Type type = elementOf(operand.value), wide = computeType(type);
        if (widen && wide != type)
          v = s.cst(wide, splat.getSplatValue<APFloat>().convertToDouble());
        else
          v = arith::ConstantOp::create(s.b, cast<TypedAttr>(splat.getSplatValue<Attribute>()));
      } else {
        v = args[next++];
        v = widen ? s.widen(v) : v;
      }
      elements.push_back(v);
    }
    if (readsInit)
      elements.push_back(widen ? s.widen(args.back()) : args.back());
    linalg::YieldOp::create(s.b, ValueRange{s.narrow(body(s, elements), element)});
  };
  return linalg::GenericOp::create(b, TypeRange{init.value.getType()}, inputs, ValueRange{init.value}, maps, iterators, buildBody)
      .getResult(0);
}

Value mapElements(Builder &b, ArrayRef<int64_t> shape, Type element, ArrayRef<Operand> operands, Body body, bool widen) {
  SmallVector<IteratorType> iterators(shape.size(), IteratorType::parallel);
  Operand init{empty(b, shape, element), AffineMap::getMultiDimIdentityMap(static_cast<unsigned>(shape.size()), b.getContext())};
  return buildGeneric(b, init, false, operands, iterators, body, widen);
}

/// True when `from` can be broadcast to `to` one way.
static bool broadcastsTo(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (from.size() > to.size())
    return false;
  return llvm::all_of(llvm::zip(from, to.take_back(from.size())), [](auto pair) {
    auto [extent, target] = pair;
    return extent == target || extent == 1;
  });
}

Value elementwise(Builder &b, ArrayRef<int64_t> shape, Type element, ValueRange operands, Body body, bool widen) {
  SmallVector<Operand> mapped;
  for (Value v : operands)
    if (!broadcastsTo(shapeOf(v), shape)) {
      emitError(b.getLoc()) << "cannot broadcast " << v.getType() << " to " << RankedTensorType::get(shape, element);
      return empty(b, shape, element);
    }
  for (Value v : operands)
    mapped.push_back({v, broadcastMap(b.getContext(), shapeOf(v), shape)});
  return mapElements(b, shape, element, mapped, body, widen);
}

Value generate(Builder &b, ArrayRef<int64_t> shape, Type element, Body body) {
  auto withIndices = [&](Scalar &s, ValueRange) {
    SmallVector<Value> indices;
    for (size_t i = 0; i < shape.size(); ++i)
      indices.push_back(linalg::IndexOp::create(s.b, static_cast<int64_t>(i)));
    return body(s, indices);
  };
  return mapElements(b, shape, element, {}, withIndices);
}

Value convertFloat(Builder &b, Value v, Type element) {
  if (elementOf(v) == element)
    return v;
  return elementwise(b, shapeOf(v), element, v,
                     [&](Scalar &s, ValueRange args) { return s.cast(args[0], false, element, false); });
}

Value stridedRead(Builder &b, Value v, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  if (numElements(sizes) == 0)
    return empty(b, sizes, elementOf(v));
  if (llvm::all_of(steps, [](int64_t step) { return step > 0; }))
    return slice(b, v, offsets, sizes, steps);
  // What is read forwards is a slice; a loop nest runs along whole dimensions of that, and backwards along the others.
  Shape firsts(sizes.size(), 0), parts(shapeOf(v)), forward(sizes.size(), 1);
  SmallVector<AffineExpr> exprs;
  for (size_t d = 0; d < sizes.size(); ++d) {
    AffineExpr loop = getAffineDimExpr(static_cast<unsigned>(d), b.getContext());
    bool isBackward = steps[d] < 0 && sizes[d] > 1;
    exprs.push_back(isBackward ? loop * steps[d] + offsets[d] : loop);
    if (!isBackward)
      firsts[d] = offsets[d], parts[d] = sizes[d], forward[d] = std::max<int64_t>(steps[d], 1);
  }
  v = slice(b, v, firsts, parts, forward);
  AffineMap map = AffineMap::get(static_cast<unsigned>(sizes.size()), 0, exprs, b.getContext());
  return mapElements(b, sizes, elementOf(v), {{v, map}}, [](Scalar &, ValueRange x) { return x[0]; }, /*widen=*/false);
}

Value reduceInto(Builder &b, Operand init, ArrayRef<Operand> operands, ArrayRef<IteratorType> iterators, Body body) {
  return buildGeneric(b, init, true, operands, iterators, body, true);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

RowDomain::RowDomain(MLIRContext *context, ArrayRef<int64_t> shape, ArrayRef<int64_t> reduced) : axes(reduced) {
  llvm::sort(axes);
  SmallVector<AffineExpr> exprs(shape.size()), outerExprs;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (llvm::is_contained(axes, static_cast<int64_t>(d)))
      continue;
    exprs[d] = getAffineDimExpr(static_cast<unsigned>(outer.size()), context);
    outerExprs.push_back(exprs[d]);
    outer.push_back(shape[d]);
  }
  for (int64_t d : axes) {
    exprs[d] = getAffineDimExpr(static_cast<unsigned>(outer.size() + inner.size()), context);
    inner.push_back(shape[d]);
  }
  unsigned rank = static_cast<unsigned>(shape.size());
  full = AffineMap::get(rank, 0, exprs, context);
  outerMap = AffineMap::get(rank, 0, outerExprs, context);
}

AffineMap RowDomain::dims(MLIRContext *context, ArrayRef<int64_t> positions) const {
  SmallVector<AffineExpr> exprs;
  for (int64_t d : positions)
    exprs.push_back(getAffineDimExpr(static_cast<unsigned>(d), context));
  return AffineMap::get(full.getNumDims(), 0, exprs, context);
}

int64_t RowDomain::domainDim(int64_t tensorDim) const { return full.getDimPosition(static_cast<unsigned>(tensorDim)); }

Value reduceRows(Builder &b, const RowDomain &domain, ArrayRef<Operand> operands, Value start, Body body) {
  SmallVector<IteratorType> iterators(domain.outer.size(), IteratorType::parallel);
  iterators.append(domain.inner.size(), IteratorType::reduction);
  return reduceInto(b, {filled(b, domain.outer, start), domain.outerMap}, operands, iterators, body);
}

Value mapRows(Builder &b, const RowDomain &domain, ArrayRef<Operand> operands, Type element, Body body) {
  unsigned rank = domain.full.getNumDims();
  Shape shape(rank);
  for (unsigned d = 0; d < rank; ++d) {
    size_t position = domain.full.getDimPosition(d);
    shape[d] = position < domain.outer.size() ? domain.outer[position] : domain.inner[position - domain.outer.size()];
  }
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  return buildGeneric(b, {empty(b, shape, element), domain.full}, false, operands, iterators, body, true);
}

} // namespace ogc::lower
