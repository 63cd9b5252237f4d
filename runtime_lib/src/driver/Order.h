//===- Order.h - orders in which the nodes of a graph may run -------------===//
#ifndef OGC_RUNTIME_DRIVER_ORDER_H
#define OGC_RUNTIME_DRIVER_ORDER_H

#include "runtime_lib/format/bundle_generated.h"

#include <cstdint>
#include <vector>

namespace ogc::runtime {

/// A topological order of the nodes: that of the schedule where `seed` is 0, else a random one.
std::vector<uint32_t> topologicalOrder(const format::fb::Graph &graph, uint64_t seed);

} // namespace ogc::runtime

#endif
