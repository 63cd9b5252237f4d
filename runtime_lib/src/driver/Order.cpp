//===- Order.cpp - orders in which the nodes of a graph may run -----------===//
#include "runtime_lib/src/driver/Order.h"

#include "runtime_lib/src/driver/Random.h"

#include <numeric>

namespace ogc::runtime {

std::vector<uint32_t> topologicalOrder(const format::fb::Graph &graph, uint64_t seed) {
  uint32_t count = graph.nodes()->size();
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (seed == 0)
    return order;
  std::vector<std::vector<uint32_t>> successors(count);
  std::vector<uint32_t> waiting(count, 0), ready;
  for (const auto *edge : *graph.edges()) {
    successors[edge->from()].push_back(edge->to());
    ++waiting[edge->to()];
  }
  for (uint32_t node = 0; node < count; ++node)
    if (waiting[node] == 0)
      ready.push_back(node);
  Random random(seed);
  for (uint32_t position = 0; position < count; ++position) {
    // The verified edges lead upwards, so some node is always ready.
    std::swap(ready[random.below(ready.size())], ready.back());
    uint32_t node = ready.back();
    ready.pop_back();
    order[position] = node;
    for (uint32_t next : successors[node])
      if (--waiting[next] == 0)
        ready.push_back(next);
  }
  return order;
}

} // namespace ogc::runtime
