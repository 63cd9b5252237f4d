//===- BucketPlan.h - which shapes to compile for observed calls ----------===//
#ifndef OGC_PIPELINE_BUCKETPLAN_H
#define OGC_PIPELINE_BUCKETPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace ogc {

/// Observed calls: a size for each symbol, and how often.
struct ShapeTrace {
  struct Call {
    std::vector<int64_t> sizes;
    double count = 1;
  };
  std::vector<std::string> symbols;
  std::vector<Call> calls; // each shape once, in the order of the sizes
};

/// Parses comma separated values: a line of symbol names (one may be `count`), then one line a call, or a shape with its count.
/// Empty lines and what follows '#' are skipped. `name` is for messages.
llvm::Expected<ShapeTrace> parseTrace(llvm::StringRef text, llvm::StringRef name);

struct BucketLimits {
  /// Most buckets; the proposer takes fewer where further ones do not pay.
  size_t buckets = 64;
  /// A further bucket must save at least this part of the work of the exact shapes.
  double gain = 0.01;
};

struct BucketPlan {
  std::vector<std::vector<int64_t>> buckets; // a size for each symbol, in order
  /// Work of the calls in their buckets over the work in graphs of exactly their shapes; 1: nothing is padded.
  double work = 1.0;
};

/// Chooses buckets for the calls such that each fits into one: equal to it in symbols that may not be padded (`isSafe` false),
/// not larger in the others. Work of a call is taken as the product of its sizes. With one symbol to pad the choice is the best
/// there is of its number of buckets (dynamic programming); with several, buckets are merged greedily. An error where the symbols
/// that cannot be padded have more values than there may be buckets.
llvm::Expected<BucketPlan> planBuckets(const ShapeTrace &trace, llvm::ArrayRef<bool> isSafe, const BucketLimits &limits);

/// The plan as texts for --shapes: buckets that differ in the last symbol alone share one.
std::vector<std::string> shapesOf(const BucketPlan &plan, llvm::ArrayRef<std::string> symbols);

} // namespace ogc

#endif
