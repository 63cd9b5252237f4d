//===- IndexMath.cpp - folded and shared index arithmetic -----------------===//
#include "compiler/codegen/scalar/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ogc::codegen {

bool isVisible(OpBuilder &builder, Value value) {
  Block *home = value.getParentBlock();
  for (Block *block = builder.getInsertionBlock(); block;) {
    if (block == home)
      return true;
    Operation *parent = block->getParentOp();
    block = parent ? parent->getBlock() : nullptr;
  }
  return false;
}

Value visibleAmong(OpBuilder &builder, SmallVectorImpl<Value> &candidates) {
  // Code is made branch by branch: what cannot be seen from here is in a branch that has been left. If it were kept, a
  // concatenation of n operands would search n candidates for each of its constants.
  while (!candidates.empty() && !isVisible(builder, candidates.back()))
    candidates.pop_back();
  return candidates.empty() ? Value() : candidates.back();
}

std::optional<int64_t> IndexMath::constantValue(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

Value IndexMath::constant(Location loc, int64_t value) {
  auto &candidates = cache[{unsigned(Kind::Constant), reinterpret_cast<const void *>(value), nullptr}];
  if (Value known = visibleAmong(builder, candidates))
    return known;
  Value made = arith::ConstantIndexOp::create(builder, loc, value);
  candidates.push_back(made);
  return made;
}

Value IndexMath::shared(Kind kind, Location loc, Value lhs, Value rhs) {
  auto &candidates = cache[{unsigned(kind), lhs.getAsOpaquePointer(), rhs.getAsOpaquePointer()}];
  if (Value known = visibleAmong(builder, candidates))
    return known;
  Value made;
  switch (kind) {
  case Kind::Constant:
    return {};
  case Kind::Add:
    made = arith::AddIOp::create(builder, loc, lhs, rhs);
    break;
  case Kind::Sub:
    made = arith::SubIOp::create(builder, loc, lhs, rhs);
    break;
  case Kind::Mul:
    made = arith::MulIOp::create(builder, loc, lhs, rhs);
    break;
  case Kind::Div:
    made = arith::DivUIOp::create(builder, loc, lhs, rhs);
    break;
  case Kind::Rem:
    made = arith::RemUIOp::create(builder, loc, lhs, rhs);
    break;
  }
  candidates.push_back(made);
  return made;
}

Value IndexMath::add(Location loc, Value lhs, Value rhs) {
  std::optional<int64_t> l = constantValue(lhs), r = constantValue(rhs);
  if (l && r)
    return constant(loc, *l + *r);
  if (l == 0)
    return rhs;
  if (r == 0)
    return lhs;
  return l ? shared(Kind::Add, loc, rhs, lhs) : shared(Kind::Add, loc, lhs, rhs);
}

Value IndexMath::sub(Location loc, Value lhs, Value rhs) {
  std::optional<int64_t> l = constantValue(lhs), r = constantValue(rhs);
  if (l && r)
    return constant(loc, *l - *r);
  return r == 0 ? lhs : shared(Kind::Sub, loc, lhs, rhs);
}

Value IndexMath::mul(Location loc, Value lhs, Value rhs) {
  std::optional<int64_t> l = constantValue(lhs), r = constantValue(rhs);
  if (l && r)
    return constant(loc, *l * *r);
  if (l == 0 || r == 1)
    return lhs;
  if (r == 0 || l == 1)
    return rhs;
  return l ? shared(Kind::Mul, loc, rhs, lhs) : shared(Kind::Mul, loc, lhs, rhs);
}

Value IndexMath::div(Location loc, Value lhs, Value rhs) {
  std::optional<int64_t> l = constantValue(lhs), r = constantValue(rhs);
  if (l && r && *r > 0)
    return constant(loc, *l / *r);
  return r == 1 || l == 0 ? lhs : shared(Kind::Div, loc, lhs, rhs);
}

Value IndexMath::rem(Location loc, Value lhs, Value rhs) {
  std::optional<int64_t> l = constantValue(lhs), r = constantValue(rhs);
  if (l && r && *r > 0)
    return constant(loc, *l % *r);
  return r == 1 ? constant(loc, 0) : l == 0 ? lhs : shared(Kind::Rem, loc, lhs, rhs);
}

Value IndexMath::lessThan(Location loc, Value lhs, int64_t rhs) {
  if (std::optional<int64_t> l = constantValue(lhs))
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(*l >= 0 && *l < rhs));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, lhs, constant(loc, rhs));
}

/// True if the expression cannot be negative while its dimensions are not.
static bool isNonNegative(AffineExpr expr) {
  if (isa<AffineDimExpr>(expr))
    return true;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() >= 0;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr))
    return isNonNegative(binary.getLHS()) && isNonNegative(binary.getRHS());
  return false;
}

Value IndexMath::applyBinary(Location loc, AffineBinaryOpExpr expr, ArrayRef<Value> dims) {
  Value lhs = apply(loc, expr.getLHS(), dims), rhs = apply(loc, expr.getRHS(), dims);
  if (!lhs || !rhs)
    return {};
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return add(loc, lhs, rhs);
  case AffineExprKind::Mul:
    return mul(loc, lhs, rhs);
  case AffineExprKind::FloorDiv:
    return isNonNegative(expr) ? div(loc, lhs, rhs) : Value(builder.createOrFold<arith::FloorDivSIOp>(loc, lhs, rhs));
  case AffineExprKind::CeilDiv:
    return builder.createOrFold<arith::CeilDivSIOp>(loc, lhs, rhs);
  case AffineExprKind::Mod: {
    if (isNonNegative(expr))
      return rem(loc, lhs, rhs);
    Value quotient = builder.createOrFold<arith::FloorDivSIOp>(loc, lhs, rhs);
    return sub(loc, lhs, mul(loc, quotient, rhs));
  }
  default:
    return {};
  }
}

Value IndexMath::apply(Location loc, AffineExpr expr, ArrayRef<Value> dims) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dim.getPosition() < dims.size() ? dims[dim.getPosition()] : Value();
  if (auto value = dyn_cast<AffineConstantExpr>(expr))
    return constant(loc, value.getValue());
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr))
    return applyBinary(loc, binary, dims);
  return {};
}

/// Replaces runs of parts that are all digits of one earlier split, in order, by what was split.
void IndexMath::joinDigits(SmallVectorImpl<Part> &parts) {
  for (size_t begin = 0; begin < parts.size(); ++begin) {
    auto first = digits.find(parts[begin].index);
    if (first == digits.end() || first->second.place != 0 || begin + first->second.places > parts.size() ||
        !isVisible(builder, first->second.whole))
      continue;
    size_t places = first->second.places;
    int64_t extent = 1;
    bool whole = true;
    for (size_t place = 0; place < places; ++place) {
      auto digit = digits.find(parts[begin + place].index);
      whole &= digit != digits.end() && digit->second.split == first->second.split && digit->second.place == place &&
               digit->second.extent == parts[begin + place].extent;
      extent *= parts[begin + place].extent;
    }
    if (!whole)
      continue;
    parts[begin] = {first->second.whole, extent};
    parts.erase(parts.begin() + begin + 1, parts.begin() + begin + places);
  }
}

/// The number of indices that parts make together.
int64_t IndexMath::sizeOf(ArrayRef<Part> parts) {
  int64_t size = 1;
  for (const Part &part : parts)
    size *= part.extent;
  return size;
}

Value IndexMath::linearize(Location loc, ArrayRef<Value> indices, ArrayRef<int64_t> extents) {
  SmallVector<Part> parts;
  for (auto [index, extent] : llvm::zip_equal(indices, extents)) {
    if (extent == 1)
      continue;
    // An index of a longer dimension may be used in a shorter one, where a condition keeps it inside (parts of a concatenation):
    // its parts then say nothing about the distance between rows.
    auto nested = joined.find(index);
    if (nested != joined.end() && sizeOf(nested->second) == extent)
      parts.append(nested->second.begin(), nested->second.end());
    else
      parts.push_back({index, extent});
  }
  if (parts.empty())
    return constant(loc, 0);
  joinDigits(parts);
  if (parts.size() == 1)
    return parts.front().index;
  Value position = parts.front().index;
  for (const Part &part : llvm::drop_begin(parts))
    position = add(loc, mul(loc, position, part.extent), part.index);
  if (!constantValue(position) && position != parts.back().index)
    joined[position] = parts;
  return position;
}

void IndexMath::splitRaw(Location loc, Value position, ArrayRef<int64_t> extents, MutableArrayRef<Value> out) {
  Value rest = position;
  for (size_t i = extents.size(); i-- > 1;) {
    out[i] = rem(loc, rest, extents[i]);
    rest = div(loc, rest, extents[i]);
  }
  out[0] = rest;
  unsigned split = ++splits;
  for (auto [place, value] : llvm::enumerate(out))
    if (out.size() > 1 && !constantValue(value))
      digits[value] = {position, split, unsigned(place), unsigned(out.size()), extents[place]};
}

SmallVector<Value> IndexMath::delinearize(Location loc, Value position, ArrayRef<int64_t> extents) {
  SmallVector<Value> result(extents.size());
  SmallVector<unsigned> dims;
  for (auto [dim, extent] : llvm::enumerate(extents)) {
    if (extent == 1)
      result[dim] = constant(loc, 0);
    else
      dims.push_back(dim);
  }
  if (llvm::is_contained(extents, 0)) { // nothing is ever asked for
    llvm::fill(result, constant(loc, 0));
    return result;
  }
  if (dims.empty())
    return result;
  SmallVector<Part> parts;
  if (auto it = joined.find(position); it != joined.end())
    parts = it->second;
  int64_t wanted = 1;
  for (unsigned dim : dims)
    wanted *= extents[dim];
  if (sizeOf(parts) != wanted)
    parts.assign({Part{position, wanted}});

  // Match the smallest runs of parts and dimensions of equal size, from the back.
  size_t partEnd = parts.size(), dimEnd = dims.size();
  while (partEnd > 0 && dimEnd > 0) {
    size_t partBegin = partEnd - 1, dimBegin = dimEnd - 1;
    int64_t partSize = parts[partBegin].extent, dimSize = extents[dims[dimBegin]];
    while (partSize != dimSize) {
      if (partSize < dimSize)
        partSize *= parts[--partBegin].extent;
      else
        dimSize *= extents[dims[--dimBegin]];
    }
    SmallVector<Value> indices, digitsOut(dimEnd - dimBegin);
    SmallVector<int64_t> partExtents, dimExtents;
    for (const Part &part : ArrayRef(parts).slice(partBegin, partEnd - partBegin)) {
      indices.push_back(part.index);
      partExtents.push_back(part.extent);
    }
    for (unsigned dim : ArrayRef(dims).slice(dimBegin, dimEnd - dimBegin))
      dimExtents.push_back(extents[dim]);
    splitRaw(loc, linearize(loc, indices, partExtents), dimExtents, digitsOut);
    for (auto [offset, value] : llvm::enumerate(digitsOut))
      result[dims[dimBegin + offset]] = value;
    partEnd = partBegin;
    dimEnd = dimBegin;
  }
  return result;
}

} // namespace ogc::codegen
