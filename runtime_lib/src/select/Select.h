//===- Select.h - the graph for the shapes of the inputs ------------------===//
#ifndef OGC_SELECT_SELECT_H
#define OGC_SELECT_SELECT_H

#include "runtime_lib/format/Status.h"
#include "runtime_lib/format/bundle_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ogc::runtime {

namespace fb = format::fb;
using Shape = std::vector<int64_t>;

struct GivenInput {
  std::string name;
  Shape shape;
};

/// A graph, and which of its named dimensions are filled up.
struct Selection {
  struct Padding {
    const fb::Symbol *symbol;
    int64_t given, size; // rows of the caller and of the graph
  };
  size_t graph = 0;
  std::vector<Padding> paddings; // empty: the shapes are the graph's own
};

/// The graph whose inputs have the given shapes; without one, the cheapest whose inputs are larger along dimensions that may be
/// padded. Cost is the number of bytes that the graph's nodes read and write; of equals the first one is taken. Inputs that are
/// not given fit any graph. InvalidArgument, with the shapes that there are, where no graph covers them.
Result<Selection> selectGraph(const fb::Manifest &manifest, const std::vector<GivenInput> &inputs);

/// The shape that the caller gives to input `index`, or gets from output `index`, of a selected graph.
Shape inputShape(const fb::Manifest &manifest, const Selection &selection, size_t index);
Shape outputShape(const fb::Manifest &manifest, const Selection &selection, size_t index);

/// Copies the elements of a dense tensor of shape `from` to one of shape `to` of the same rank, position by position, as far as
/// both reach; what only `to` has becomes zero. `elementBytes` is the size of an element.
void copyRows(const void *source, const Shape &from, void *target, const Shape &to, size_t elementBytes);

} // namespace ogc::runtime

#endif
