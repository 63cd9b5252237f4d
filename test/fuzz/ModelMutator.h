//===- ModelMutator.h - damages models in ways that still look like models -===//
#ifndef OGC_TEST_FUZZ_MODELMUTATOR_H
#define OGC_TEST_FUZZ_MODELMUTATOR_H

#include "test/fuzz/Random.h"

#include <google/protobuf/message.h>
#include <onnx/onnx_pb.h>

namespace ogc::fuzz {

/// Mutates parsed models through protobuf's reflection, so that every field of every message is reached: attributes, dimensions,
/// names, types, edges, node order, opsets, raw data.
class ModelMutator {
public:
  /// `corpus`: the models that parts and names are borrowed from.
  explicit ModelMutator(const std::vector<onnx::ModelProto> &corpus);

  /// Applies one to a few mutations.
  void mutate(onnx::ModelProto &model, Random &random) const;

private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;

  void mutateOnce(onnx::ModelProto &model, Random &random) const;
  void mutateField(Message &message, const Field &field, Random &random, const std::vector<std::string> &names) const;
  void mutateRepeated(Message &message, const Field &field, Random &random, const std::vector<std::string> &names) const;
  void mutateScalar(Message &message, const Field &field, int index, Random &random, const std::vector<std::string> &names) const;
  std::string oddString(Random &random, std::string old, const Field &field, const std::vector<std::string> &names) const;
  /// Replaces a message by one of the same type from the corpus.
  void splice(Message &message, Random &random) const;

  const std::vector<onnx::ModelProto> &corpus;
  std::vector<std::string> opTypes, texts; ///< operator names, and string attributes, of the corpus
};

} // namespace ogc::fuzz

#endif
