//===- Tuning.h - measured choices instead of rules -----------------------===//
//
// A schedule decides by numbers: tiles, splits, threads, when the next kernel may start. Rules give them from shapes alone. Where
// somebody has measured a problem in whole graphs, a table gives better ones. The compiler ships a table for each architecture
// that was tuned; a file given by the user comes before it.
//
// A table is text, a line a problem: "gemm f16 1x128x768x3072 panel a8 = bm=64 bn=64 … trigger=1". '#' begins a comment.
//
#ifndef OGC_CODEGEN_CUDA_TUNING_H
#define OGC_CODEGEN_CUDA_TUNING_H

#include "compiler/codegen/cuda/KernelText.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace ogc::codegen {

/// Named numbers of a schedule in its own order: "bm=64 bn=32 split=2".
class Knobs {
public:
  void set(llvm::StringRef name, int64_t value) { values.emplace_back(name.str(), value); }
  std::optional<int64_t> get(llvm::StringRef name) const;
  std::string str() const;
  /// Nothing unless the text is a list of name=number.
  static std::optional<Knobs> parse(llvm::StringRef text);
  bool operator==(const Knobs &) const = default;

private:
  llvm::SmallVector<std::pair<std::string, int64_t>, 12> values;
};

class TuningTable {
public:
  /// The table that the compiler ships; empty for an architecture that nobody has tuned.
  static const TuningTable &builtin(CudaArch arch);
  /// Errors name `source`, the line and what is wrong with it.
  static llvm::Expected<TuningTable> parse(llvm::StringRef text, llvm::StringRef source);
  static llvm::Expected<TuningTable> read(llvm::StringRef path);

  const Knobs *find(llvm::StringRef problem) const;
  size_t size() const { return choices.size(); }

private:
  llvm::StringMap<Knobs> choices;
};

/// What all schedules have besides their own numbers.
struct LaunchPolicy {
  Trigger trigger = Trigger::AfterWait;
  /// Dynamic shared memory that a block asks for beyond its need, in bytes: it limits how many share a multiprocessor.
  int64_t reservedBytes = 0;

  template <typename Visitor> void visitPolicy(Visitor &&visit) {
    visit("trigger", trigger);
    visit("reserve", reservedBytes);
  }
};

/// Where the numbers of one printed kernel come from, and what it could have been.
struct Tuning {
  /// Searched in order.
  llvm::SmallVector<const TuningTable *, 2> tables;
  /// Taken instead of table and rule when they are legal for the problem.
  std::optional<Knobs> forced;
  /// Fill `candidates`.
  bool collect = false;

  // Results of a print.
  std::string problem;
  Knobs chosen;
  std::vector<Knobs> candidates;

  const Knobs *find(llvm::StringRef key) const;
};

/// The choice for a problem: forced, from a table, or by the rule. A choice has `visit(f)`, which calls f(name, number &) for
/// each number; `isLegal` says whether numbers from outside fit the problem. `candidates` are what a tuner should try.
template <typename Choice, typename Legal, typename Candidates>
Choice choose(Tuning &tuning, std::string problem, const Choice &rule, Legal &&isLegal, Candidates &&candidates) {
  auto knobsOf = [](Choice choice) {
    Knobs knobs;
    choice.visit([&](llvm::StringRef name, auto &value) { knobs.set(name, static_cast<int64_t>(value)); });
    return knobs;
  };
  auto assign = [&](const Knobs &knobs) -> std::optional<Choice> {
    Choice choice = rule;
    bool complete = true;
    choice.visit([&](llvm::StringRef name, auto &value) {
      std::optional<int64_t> number = knobs.get(name);
      complete &= number.has_value();
      if (number)
        value = static_cast<std::remove_reference_t<decltype(value)>>(*number);
    });
    bool isTrigger = choice.trigger >= Trigger::Start && choice.trigger <= Trigger::AfterMainLoop;
    return complete && isTrigger && choice.reservedBytes >= 0 && isLegal(choice) ? std::optional(choice) : std::nullopt;
  };
  tuning.problem = std::move(problem);
  Choice result = rule;
  const Knobs *known = tuning.forced ? &*tuning.forced : tuning.find(tuning.problem);
  if (known)
    if (std::optional<Choice> assigned = assign(*known))
      result = *assigned;
  tuning.chosen = knobsOf(result);
  if (tuning.collect) {
    tuning.candidates.clear();
    std::vector<Choice> all = candidates();
    all.insert(all.begin(), rule);
    for (const Choice &candidate : all)
      for (Trigger trigger : {Trigger::AfterWait, Trigger::Start, Trigger::AfterMainLoop}) {
        Choice variant = candidate;
        variant.trigger = trigger;
        Knobs knobs = knobsOf(variant);
        if (!llvm::is_contained(tuning.candidates, knobs))
          tuning.candidates.push_back(knobs);
      }
  }
  return result;
}

} // namespace ogc::codegen

#endif
