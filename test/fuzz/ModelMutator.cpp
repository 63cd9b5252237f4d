//===- ModelMutator.cpp - damages models in ways that still look like models ===//
#include "test/fuzz/ModelMutator.h"

#include <algorithm>
#include <set>

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace ogc::fuzz {

namespace {

/// All messages below `message`, itself first. Parts that only carry documentation are left out.
void collect(Message &message, std::vector<Message *> &found) {
  found.push_back(&message);
  const Reflection &reflection = *message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->name() == "metadata_props")
      continue;
    if (!field->is_repeated()) {
      collect(*reflection.MutableMessage(&message, field), found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      collect(*reflection.MutableRepeatedMessage(&message, field, i), found);
  }
}

std::vector<Message *> collect(onnx::ModelProto &model) {
  std::vector<Message *> found;
  collect(model, found);
  return found;
}

/// The names of values in a model: what edges are made of.
std::vector<std::string> valueNames(const std::vector<Message *> &messages) {
  std::set<std::string> names = {""};
  for (const Message *message : messages) {
    if (const auto *node = dynamic_cast<const onnx::NodeProto *>(message)) {
      names.insert(node->input().begin(), node->input().end());
      names.insert(node->output().begin(), node->output().end());
    } else if (const auto *info = dynamic_cast<const onnx::ValueInfoProto *>(message)) {
      names.insert(info->name());
    } else if (const auto *tensor = dynamic_cast<const onnx::TensorProto *>(message)) {
      names.insert(tensor->name());
    }
  }
  return {names.begin(), names.end()};
}

bool isDocumentation(const FieldDescriptor &field) {
  return field.name() == "doc_string" || field.name() == "producer_name" || field.name() == "producer_version" ||
         field.name() == "model_version" || field.name() == "metadata_props" || field.name() == "denotation";
}

} // namespace

ModelMutator::ModelMutator(const std::vector<onnx::ModelProto> &corpus) : corpus(corpus) {
  std::set<std::string> types, strings = {"", "NOTSET", "linear", "reflect"};
  for (const onnx::ModelProto &model : corpus) {
    onnx::ModelProto copy = model;
    for (const Message *message : collect(copy)) {
      if (const auto *node = dynamic_cast<const onnx::NodeProto *>(message))
        types.insert(node->op_type());
      if (const auto *attribute = dynamic_cast<const onnx::AttributeProto *>(message); attribute && attribute->has_s())
        strings.insert(attribute->s());
    }
  }
  opTypes.assign(types.begin(), types.end());
  texts.assign(strings.begin(), strings.end());
}

void ModelMutator::mutate(onnx::ModelProto &model, Random &random) const {
  uint64_t count = 1;
  while (count < 8 && random.oneIn(2))
    ++count;
  for (; count != 0; --count)
    mutateOnce(model, random);
}

void ModelMutator::mutateOnce(onnx::ModelProto &model, Random &random) const {
  std::vector<Message *> messages = collect(model);
  std::vector<std::string> names = valueNames(messages);
  if (random.oneIn(2)) { // numbers and names inside of a model that stays what it is reach further than missing parts
    std::erase_if(messages, [](const Message *message) {
      const Descriptor *type = message->GetDescriptor();
      return type != onnx::AttributeProto::descriptor() && type != onnx::TensorProto::descriptor() &&
             type != onnx::TensorShapeProto::Dimension::descriptor();
    });
    if (messages.empty())
      return;
  }
  Message &message = *random.pick(messages);
  if (random.oneIn(12))
    return splice(message, random);
  // Mostly fields that are set; sometimes one that is not.
  std::vector<const FieldDescriptor *> fields;
  message.GetReflection()->ListFields(message, &fields);
  if (fields.empty() || random.oneIn(6)) {
    const Descriptor &type = *message.GetDescriptor();
    fields = {type.field(static_cast<int>(random.below(static_cast<uint64_t>(type.field_count()))))};
  }
  const FieldDescriptor &field = *random.pick(fields);
  if (!isDocumentation(field))
    mutateField(message, field, random, names);
}

void ModelMutator::mutateField(Message &message, const Field &field, Random &random,
                               const std::vector<std::string> &names) const {
  if (field.is_repeated())
    return mutateRepeated(message, field, random, names);
  if (random.oneIn(8))
    return message.GetReflection()->ClearField(&message, &field);
  if (field.cpp_type() == Field::CPPTYPE_MESSAGE)
    return splice(*message.GetReflection()->MutableMessage(&message, &field), random);
  mutateScalar(message, field, -1, random, names);
}

void ModelMutator::mutateRepeated(Message &message, const Field &field, Random &random,
                                  const std::vector<std::string> &names) const {
  const Reflection &reflection = *message.GetReflection();
  int size = reflection.FieldSize(message, &field);
  bool isMessage = field.cpp_type() == Field::CPPTYPE_MESSAGE;
  int at = static_cast<int>(random.below(static_cast<uint64_t>(size)));
  switch (size == 0 ? 0 : random.below(isMessage ? 5 : 7)) {
  case 0: // one more: a copy of another element, or an empty one
    if (isMessage) {
      Message &added = *reflection.AddMessage(&message, &field);
      if (size != 0 && !random.oneIn(4))
        added.CopyFrom(reflection.GetRepeatedMessage(message, &field, at));
      return;
    }
    switch (field.cpp_type()) {
    case Field::CPPTYPE_STRING:
      return reflection.AddString(&message, &field, random.pick(names));
    case Field::CPPTYPE_INT32:
      return reflection.AddInt32(&message, &field, static_cast<int32_t>(oddInteger(random, 1)));
    case Field::CPPTYPE_INT64:
      return reflection.AddInt64(&message, &field, oddInteger(random, 1));
    case Field::CPPTYPE_UINT64:
      return reflection.AddUInt64(&message, &field, static_cast<uint64_t>(oddInteger(random, 1)));
    case Field::CPPTYPE_FLOAT:
      return reflection.AddFloat(&message, &field, static_cast<float>(oddFloat(random, 1)));
    case Field::CPPTYPE_DOUBLE:
      return reflection.AddDouble(&message, &field, oddFloat(random, 1));
    default:
      return;
    }
  case 1:
    reflection.SwapElements(&message, &field, at, static_cast<int>(random.below(static_cast<uint64_t>(size))));
    return;
  case 2:
    reflection.SwapElements(&message, &field, at, size - 1);
    reflection.RemoveLast(&message, &field);
    return;
  case 3:
    if (random.oneIn(4))
      reflection.ClearField(&message, &field);
    return;
  default:
    if (isMessage)
      return splice(*reflection.MutableRepeatedMessage(&message, &field, at), random);
    mutateScalar(message, field, at, random, names);
  }
}

std::string ModelMutator::oddString(Random &random, std::string old, const Field &field,
                                    const std::vector<std::string> &names) const {
  if (field.type() == Field::TYPE_BYTES && field.name() == "raw_data") {
    damageBytes(random, old);
    return old;
  }
  if (field.name() == "op_type" && !random.oneIn(8))
    return random.pick(opTypes);
  if (field.name() == "s" && !random.oneIn(8))
    return random.pick(texts);
  switch (random.below(8)) {
  case 0:
    return "";
  case 1:
    damageBytes(random, old);
    return old;
  case 2:
    return old + old;
  case 3:
    return random.pick(texts);
  default:
    return random.pick(names);
  }
}

void ModelMutator::mutateScalar(Message &message, const Field &field, int index, Random &random,
                                const std::vector<std::string> &names) const {
  const Reflection &reflection = *message.GetReflection();
  bool isElement = index >= 0;
  auto change = [&](auto get, auto getElement, auto set, auto setElement, auto make) {
    auto old = isElement ? (reflection.*getElement)(message, &field, index) : (reflection.*get)(message, &field);
    if (isElement)
      (reflection.*setElement)(&message, &field, index, make(old));
    else
      (reflection.*set)(&message, &field, make(old));
  };
  auto integer = [&](auto old) { return static_cast<decltype(old)>(oddInteger(random, static_cast<int64_t>(old))); };
  auto number = [&](auto old) { return static_cast<decltype(old)>(oddFloat(random, static_cast<double>(old))); };
  switch (field.cpp_type()) {
  case Field::CPPTYPE_INT32:
    if (field.name() == "data_type" || field.name() == "elem_type") { // mostly a type that exists
      auto type = [&](int32_t) { return static_cast<int32_t>(random.below(28)); };
      return change(&Reflection::GetInt32, &Reflection::GetRepeatedInt32, &Reflection::SetInt32, &Reflection::SetRepeatedInt32,
                    type);
    }
    return change(&Reflection::GetInt32, &Reflection::GetRepeatedInt32, &Reflection::SetInt32, &Reflection::SetRepeatedInt32,
                  integer);
  case Field::CPPTYPE_INT64:
    return change(&Reflection::GetInt64, &Reflection::GetRepeatedInt64, &Reflection::SetInt64, &Reflection::SetRepeatedInt64,
                  integer);
  case Field::CPPTYPE_UINT64:
    return change(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64, &Reflection::SetUInt64, &Reflection::SetRepeatedUInt64,
                  integer);
  case Field::CPPTYPE_FLOAT:
    return change(&Reflection::GetFloat, &Reflection::GetRepeatedFloat, &Reflection::SetFloat, &Reflection::SetRepeatedFloat,
                  number);
  case Field::CPPTYPE_DOUBLE:
    return change(&Reflection::GetDouble, &Reflection::GetRepeatedDouble, &Reflection::SetDouble, &Reflection::SetRepeatedDouble,
                  number);
  case Field::CPPTYPE_STRING: {
    std::string old = isElement ? reflection.GetRepeatedString(message, &field, index) : reflection.GetString(message, &field);
    std::string text = oddString(random, std::move(old), field, names);
    return isElement ? reflection.SetRepeatedString(&message, &field, index, text) : reflection.SetString(&message, &field, text);
  }
  case Field::CPPTYPE_ENUM: {
    const auto &type = *field.enum_type();
    const auto *value = type.value(static_cast<int>(random.below(static_cast<uint64_t>(type.value_count()))));
    return isElement ? reflection.SetRepeatedEnum(&message, &field, index, value) : reflection.SetEnum(&message, &field, value);
  }
  default:
    return;
  }
}

void ModelMutator::splice(Message &message, Random &random) const {
  onnx::ModelProto other = random.pick(corpus);
  std::vector<Message *> found = collect(other);
  std::erase_if(found, [&](const Message *candidate) { return candidate->GetDescriptor() != message.GetDescriptor(); });
  if (!found.empty())
    message.CopyFrom(*random.pick(found));
}

} // namespace ogc::fuzz
