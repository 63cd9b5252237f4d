//===- MemoryPlan.cpp - which bytes live when, read back from a bundle -----===//
#include "runtime_lib/format/MemoryPlan.h"

#include "runtime_lib/format/Dump.h"

#include <algorithm>
#include <array>
#include <map>

namespace ogc::format {

namespace {

/// The latest buffer of each byte of a section: disjoint ranges by their beginning.
class ByteOwners {
public:
  /// Gives the bytes to a new buffer.
  void write(uint64_t begin, uint64_t end, size_t buffer) {
    if (begin == end)
      return;
    cut(begin);
    cut(end);
    ranges.erase(ranges.lower_bound(begin), ranges.lower_bound(end));
    ranges[begin] = {end, buffer};
  }

  /// Calls `use` with the buffer of every range that overlaps. Returns how many of the bytes belong to a buffer.
  template <typename Use> uint64_t read(uint64_t begin, uint64_t end, Use use) const {
    uint64_t owned = 0;
    auto it = ranges.upper_bound(begin);
    if (it != ranges.begin())
      --it;
    for (; it != ranges.end() && it->first < end; ++it)
      if (it->second.end > begin) {
        use(it->second.buffer);
        owned += std::min(end, it->second.end) - std::max(begin, it->first);
      }
    return owned;
  }

private:
  struct Range {
    uint64_t end;
    size_t buffer;
  };

  /// Divides the range that holds `at` there.
  void cut(uint64_t at) {
    auto it = ranges.upper_bound(at);
    if (it == ranges.begin())
      return;
    --it;
    if (it->first == at || it->second.end <= at)
      return;
    ranges[at] = it->second;
    it->second.end = at;
  }

  std::map<uint64_t, Range> ranges;
};

class PlanReader {
public:
  PlanReader(const fb::Manifest &manifest, const fb::Graph &graph) : manifest(manifest), graph(graph) {}

  MemoryPlan run() {
    addWeights();
    for (const fb::Binding *binding : *graph.inputs())
      begin(*binding->slice(), -1, binding->name()->str());
    for (unsigned i = 0; i < graph.nodes()->size(); ++i)
      visit(i);
    auto end = static_cast<int64_t>(graph.nodes()->size());
    for (const fb::Binding *binding : *graph.outputs()) {
      const fb::Slice &slice = *binding->slice();
      bool isWritten = false;
      owners[static_cast<size_t>(slice.section())].read(slice.offset_bytes(), slice.offset_bytes() + slice.size_bytes(),
                                                        [&](size_t buffer) {
                                                          plan.buffers[buffer].last = end;
                                                          isWritten = true;
                                                          if (plan.buffers[buffer].section == fb::Section::Outputs)
                                                            plan.buffers[buffer].name = binding->name()->str();
                                                        });
      if (!isWritten && slice.size_bytes() != 0)
        plan.buffers.push_back({slice.section(), slice.offset_bytes(), slice.size_bytes(), -1, end, binding->name()->str()});
    }
    findPeak();
    return std::move(plan);
  }

private:
  void addWeights() {
    auto end = static_cast<int64_t>(graph.nodes()->size());
    for (const fb::Weight *weight : *manifest.weights())
      if (weight->size_bytes() != 0)
        plan.buffers.push_back(
            {fb::Section::Weights, weight->offset_bytes(), weight->size_bytes(), -1, end, weight->name()->str()});
  }

  void begin(const fb::Slice &slice, int64_t at, std::string name) {
    if (slice.size_bytes() == 0 || slice.section() == fb::Section::Weights)
      return;
    owners[static_cast<size_t>(slice.section())].write(slice.offset_bytes(), slice.offset_bytes() + slice.size_bytes(),
                                                       plan.buffers.size());
    plan.buffers.push_back({slice.section(), slice.offset_bytes(), slice.size_bytes(), at, at, std::move(name)});
  }

  void visit(unsigned index) {
    const fb::Node &node = *graph.nodes()->Get(index);
    std::vector<const fb::Slice *> begun;
    for (const fb::Slice *slice : *node.args()) {
      uint64_t owned = 0;
      if (slice->access() != fb::Access::Write && slice->section() != fb::Section::Weights)
        owned =
            owners[static_cast<size_t>(slice->section())].read(slice->offset_bytes(), slice->offset_bytes() + slice->size_bytes(),
                                                               [&](size_t buffer) { plan.buffers[buffer].last = index; });
      // What is updated in place goes on living.
      if (slice->access() == fb::Access::Write || (slice->access() == fb::Access::ReadWrite && owned < slice->size_bytes()))
        begun.push_back(slice);
    }
    for (const fb::Slice *slice : begun)
      begin(*slice, index, nodeNames(node, ", "));
  }

  void findPeak() {
    auto count = static_cast<int64_t>(graph.nodes()->size());
    std::vector<int64_t> change(static_cast<size_t>(count) + 1);
    auto bytesOf = [](const PlannedBuffer &buffer) { return static_cast<int64_t>(buffer.size); };
    auto firstOf = [](const PlannedBuffer &buffer) { return static_cast<size_t>(std::max<int64_t>(buffer.first, 0)); };
    auto afterLast = [&](const PlannedBuffer &buffer) { return static_cast<size_t>(std::min(buffer.last + 1, count)); };
    for (const PlannedBuffer &buffer : plan.buffers)
      if (buffer.section == fb::Section::Scratch) {
        change[firstOf(buffer)] += bytesOf(buffer);
        change[std::max(afterLast(buffer), firstOf(buffer))] -= bytesOf(buffer);
      }
    int64_t live = 0, most = 0;
    for (size_t node = 0; node < static_cast<size_t>(count); ++node)
      if (live += change[node]; live > most) {
        most = live;
        plan.peakNode = node;
      }
    plan.peakLiveBytes = static_cast<uint64_t>(most);
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const PlannedBuffer &buffer = plan.buffers[i];
      if (buffer.section == fb::Section::Scratch && firstOf(buffer) <= plan.peakNode && plan.peakNode < afterLast(buffer))
        plan.liveAtPeak.push_back(i);
    }
    std::sort(plan.liveAtPeak.begin(), plan.liveAtPeak.end(), [&](size_t a, size_t b) {
      uint64_t sizeA = plan.buffers[a].size, sizeB = plan.buffers[b].size;
      return sizeA != sizeB ? sizeA > sizeB : a < b;
    });
  }

  const fb::Manifest &manifest;
  const fb::Graph &graph;
  std::array<ByteOwners, 5> owners; ///< by section
  MemoryPlan plan;
};

} // namespace

MemoryPlan readMemoryPlan(const fb::Manifest &manifest, const fb::Graph &graph) { return PlanReader(manifest, graph).run(); }

} // namespace ogc::format
