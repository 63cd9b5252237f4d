//===- Einsum.cpp - sums of products by index letters ---------------------===//
//
// Operands are taken in from the left: diagonals first, then sums over what occurs in one operand alone, then products of two. A
// product with common summed letters is a batched matrix product, any other is element-wise.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Contraction.h"

#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;

namespace ogc::lower {
namespace {

/// Index letters; dimensions of the ellipsis are numbers from 256 on, counted from the right.
using Labels = SmallVector<int>;
constexpr int ellipsisLabel = 256;

struct Term {
  Value value;
  Labels labels;
  bool isConstant = false;
};

class Einsum {
public:
  explicit Einsum(Node &n) : n(n), equation(n.op.getStr("equation")) {}

  LogicalResult run() {
    if (failed(parse()))
      return failure();
    for (Term &term : terms) {
      takeDiagonal(term);
      dropUnits(term);
    }
    while (terms.size() > 1) {
      for (size_t i = 0; i < terms.size(); ++i)
        sumAlone(i);
      Term result = multiply(terms[0], terms[1]);
      terms.erase(terms.begin(), terms.begin() + 2);
      terms.insert(terms.begin(), result);
    }
    sumAlone(0);
    return n.result(arrange(terms[0]));
  }

private:
  bool isNeeded(int label, size_t exceptTerm) {
    if (llvm::is_contained(output, label))
      return true;
    for (auto [i, term] : llvm::enumerate(terms))
      if (i != exceptTerm && llvm::is_contained(term.labels, label))
        return true;
    return false;
  }

  /// The letters of one side, of which the importer has checked the form; the ellipsis stands for `ellipsisRank` dimensions.
  static Labels parseTerm(StringRef text, int64_t ellipsisRank) {
    Labels labels;
    while (!text.empty()) {
      if (text.consume_front("...")) {
        for (int64_t d = ellipsisRank; d-- > 0;)
          labels.push_back(ellipsisLabel + static_cast<int>(d));
      } else {
        labels.push_back(text.front());
        text = text.drop_front();
      }
    }
    return labels;
  }

  LogicalResult parse() {
    auto [left, right] = StringRef(equation).split("->");
    SmallVector<StringRef> parts;
    left.split(parts, ',');
    if (static_cast<int>(parts.size()) != n.numInputs())
      return n.fail("equation '" + equation + "' has " + Twine(parts.size()) + " terms for " + Twine(n.numInputs()) +
                    " operands");
    int64_t mostEllipsis = 0;
    for (auto [i, part] : llvm::enumerate(parts)) {
      bool hasEllipsis = part.contains("...");
      int64_t letters = llvm::count_if(part, [](char c) { return llvm::isAlpha(c); });
      int64_t rest = n.inRank(static_cast<int>(i)) - letters;
      if (rest < 0 || (rest > 0 && !hasEllipsis))
        return n.fail("term '" + part + "' does not fit operand " + Twine(i) + " of rank " +
                      Twine(n.inRank(static_cast<int>(i))));
      mostEllipsis = std::max(mostEllipsis, rest);
      Term term{n.in(static_cast<int>(i)), parseTerm(part, rest), n.isConstantIn(static_cast<int>(i))};
      if (failed(noteExtents(term)))
        return failure();
      terms.push_back(term);
    }
    if (StringRef(equation).contains("->")) {
      output = parseTerm(right, mostEllipsis);
      return success();
    }
    // The ellipsis, then the letters that occur once, in order.
    std::map<int, int> count;
    for (const Term &term : terms)
      for (int label : term.labels)
        if (label < ellipsisLabel)
          ++count[label];
    for (int64_t d = mostEllipsis; d-- > 0;)
      output.push_back(ellipsisLabel + static_cast<int>(d));
    for (auto [label, times] : count)
      if (times == 1)
        output.push_back(label);
    return success();
  }

  LogicalResult noteExtents(const Term &term) {
    for (auto [label, extent] : llvm::zip_equal(term.labels, shapeOf(term.value))) {
      int64_t &known = extents.try_emplace(label, extent).first->second;
      if (known == 1)
        known = extent;
      if (extent != known && extent != 1)
        return n.fail("equation '" + equation + "' gives one letter the extents " + Twine(known) + " and " + Twine(extent));
    }
    return success();
  }

  /// Dimensions with the same letter become one.
  void takeDiagonal(Term &term) {
    Labels unique;
    for (int label : term.labels)
      if (!llvm::is_contained(unique, label))
        unique.push_back(label);
    if (unique.size() == term.labels.size())
      return;
    MLIRContext *context = n.b.getContext();
    SmallVector<AffineExpr> exprs;
    Shape shape(unique.size(), 1);
    for (auto [label, extent] : llvm::zip_equal(term.labels, shapeOf(term.value))) {
      size_t at = llvm::find(unique, label) - unique.begin();
      shape[at] = std::max(shape[at], extent);
      exprs.push_back(getAffineDimExpr(static_cast<unsigned>(at), context));
    }
    for (auto [expr, extent] : llvm::zip_equal(exprs, shapeOf(term.value)))
      if (extent == 1 && shape[cast<AffineDimExpr>(expr).getPosition()] != 1)
        expr = getAffineConstantExpr(0, context);
    AffineMap map = AffineMap::get(static_cast<unsigned>(unique.size()), 0, exprs, context);
    term.value = mapElements(
        n.b, shape, elementOf(term.value), {{term.value, map}}, [](Scalar &, ValueRange x) { return x[0]; }, /*widen=*/false);
    term.labels = unique;
  }

  /// Dimensions of extent one that others have longer are broadcast: they go away here.
  void dropUnits(Term &term) {
    Labels kept;
    Shape shape;
    for (auto [label, extent] : llvm::zip_equal(term.labels, shapeOf(term.value))) {
      if (extent == 1 && extents[label] != 1)
        continue;
      kept.push_back(label);
      shape.push_back(extent);
    }
    term.value = reshape(n.b, term.value, shape);
    term.labels = kept;
  }

  /// Sums over letters that nothing else has. Letters that the term lacks but the sum runs over count as often as they are long:
  /// only a broadcast letter can do that, and then another term has it.
  void sumAlone(size_t i) {
    Term &term = terms[i];
    Shape axes;
    Labels kept;
    for (auto [d, label] : llvm::enumerate(term.labels))
      if (isNeeded(label, i))
        kept.push_back(label);
      else
        axes.push_back(static_cast<int64_t>(d));
    if (axes.empty())
      return;
    RowDomain domain(n.b.getContext(), shapeOf(term.value), axes);
    Scalar s(n.b, n.op.getLoc());
    Value sum = reduceRows(n.b, domain, {{term.value, domain.full}}, s.icst(computeType(elementOf(term.value)), 0),
                           [](Scalar &s, ValueRange x) { return s.add(x[1], x[0]); });
    term.value = convertFloat(n.b, sum, elementOf(term.value));
    term.labels = kept;
  }

  Shape extentsOf(const Labels &labels) {
    Shape shape;
    for (int label : labels)
      shape.push_back(extents[label]);
    return shape;
  }

  /// The term's value with its letters in another order.
  Value ordered(const Term &term, const Labels &order) {
    Shape permutation;
    for (int label : order)
      permutation.push_back(llvm::find(term.labels, label) - term.labels.begin());
    return transpose(n.b, term.value, permutation);
  }

  Term multiply(const Term &a, const Term &b) {
    Labels batch, rows, columns, summed;
    for (int label : a.labels) {
      bool isCommon = llvm::is_contained(b.labels, label), isKept = llvm::is_contained(output, label);
      for (size_t i = 2; i < terms.size(); ++i)
        isKept |= llvm::is_contained(terms[i].labels, label);
      (isCommon ? (isKept ? batch : summed) : rows).push_back(label);
    }
    for (int label : b.labels)
      if (!llvm::is_contained(a.labels, label))
        columns.push_back(label);
    Term result{{}, batch, a.isConstant && b.isConstant};
    llvm::append_range(result.labels, rows);
    llvm::append_range(result.labels, columns);
    Shape shape = extentsOf(result.labels);
    if (summed.empty() || numElements(shape) == 0 || numElements(extentsOf(summed)) == 0) {
      result.value = multiplyElements(a, b, result.labels, summed);
      return result;
    }
    int64_t batches = numElements(extentsOf(batch)), m = numElements(extentsOf(rows)), k = numElements(extentsOf(summed)),
            width = numElements(extentsOf(columns));
    auto joined = [](std::initializer_list<Labels> parts) {
      Labels all;
      for (const Labels &part : parts)
        llvm::append_range(all, part);
      return all;
    };
    Shape batchShape = batch.empty() ? Shape{} : Shape{batches};
    auto withBatch = [&](int64_t x, int64_t y) { return batch.empty() ? Shape{x, y} : Shape{batches, x, y}; };
    Value lhs = reshape(n.b, ordered(a, joined({batch, rows, summed})), withBatch(m, k)), rhs;
    if (b.labels == joined({batch, columns, summed})) // summed letters inside: the product reads it as it is
      rhs = transpose(n.b, reshape(n.b, b.value, withBatch(width, k)), batch.empty() ? Shape{1, 0} : Shape{0, 2, 1});
    else
      rhs = reshape(n.b, ordered(b, joined({batch, summed, columns})), withBatch(k, width));
    result.value = reshape(n.b, matrixProduct(n, lhs, rhs, b.isConstant, batchShape, n.outElement()), shape);
    return result;
  }

  /// The product without common sums; sums over nothing give zero.
  Value multiplyElements(const Term &a, const Term &b, const Labels &labels, const Labels &summed) {
    Shape shape = extentsOf(labels);
    Scalar s(n.b, n.op.getLoc());
    if (!summed.empty())
      return filled(n.b, shape, s.icst(n.outElement(), 0));
    auto map = [&](const Term &term) {
      SmallVector<AffineExpr> exprs;
      for (int label : term.labels)
        exprs.push_back(getAffineDimExpr(static_cast<unsigned>(llvm::find(labels, label) - labels.begin()), n.b.getContext()));
      return AffineMap::get(static_cast<unsigned>(labels.size()), 0, exprs, n.b.getContext());
    };
    return mapElements(n.b, shape, n.outElement(), {{a.value, map(a)}, {b.value, map(b)}},
                       [](Scalar &s, ValueRange x) { return s.mul(x[0], x[1]); });
  }

  /// The last term in the order of the output; output letters that it lacks have extent one.
  Value arrange(const Term &term) {
    Labels order;
    for (int label : output)
      if (llvm::is_contained(term.labels, label))
        order.push_back(label);
    return reshape(n.b, ordered(term, order), n.outShape());
  }

  Node &n;
  std::string equation;
  SmallVector<Term> terms;
  Labels output;
  std::map<int, int64_t> extents;
};

LogicalResult einsum(Node &n) { return Einsum(n).run(); }

} // namespace

void registerEinsum(Table &t) { t.add("Einsum", einsum); }

} // namespace ogc::lower
