//===- Verify.h - nothing in a manifest is trusted before this ------------===//
#ifndef OGC_FORMAT_VERIFY_H
#define OGC_FORMAT_VERIFY_H

#include "runtime_lib/format/Status.h"
#include "runtime_lib/format/bundle_generated.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ogc::format {

/// Checks the manifest of a file whose sections may fill [64, `sectionsEnd`), and returns it. What holds afterwards:
/// - FlatBuffers structure, every enumerator a known one, names unique;
/// - sections aligned, in bounds, without overlap; each cubin, symbol and kernel that is referred to exists; every target has
/// code for every
///   kernel that a kernel node launches, and the cpu target also for the fallback of every gemm;
/// - launch shapes within CUDA's limits; slices and weights inside their sections; nothing writes to weights;
/// - the size of a binding is that of its shape and type; argument counts and sizes of gemm, memcpy and memset nodes fit;
/// - edges lead from a lower to a higher node, are unique, and programmatic only from kernel to kernel.
/// Failures are DataLoss, and name the place.
Result<const fb::Manifest *> verifyManifest(std::span<const std::byte> bytes, uint64_t sectionsEnd);

} // namespace ogc::format

#endif
