// Our Example parser beside protobuf's, compiled from the same message: both accept a payload, with the same
// keys and the same values bit for bit, or neither does; and what ours writes are protobuf's deterministic
// bytes.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/examples/example.h"
#include "example.pb.h"
#include "fuzz/invariant.h"

namespace {

using stoker::FeatureKind;
using stoker::FeatureView;
using stoker::fuzz::require;
using stoker::fuzz::wire::Example;
using stoker::fuzz::wire::Feature;

std::string text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Values>
Values values_of(const FeatureView& view) {
  Values values;
  view.append_to(values);
  return values;
}

void compare_bytes(const FeatureView& ours, const Feature& theirs) {
  const auto values = values_of<stoker::BytesValues>(ours);
  const auto& others = theirs.bytes_list().value();
  require(values.size() == static_cast<size_t>(others.size()));
  for (size_t i = 0; i < values.size(); ++i) require(text(values[i]) == others[static_cast<int>(i)]);
}

void compare_floats(const FeatureView& ours, const Feature& theirs) {
  const auto values = values_of<stoker::FloatValues>(ours);
  const auto& others = theirs.float_list().value();
  require(values.size() == static_cast<size_t>(others.size()));
  require(values.empty() || std::memcmp(values.data(), others.data(), values.size() * sizeof(float)) == 0);
}

void compare_numbers(const FeatureView& ours, const Feature& theirs) {
  const auto values = values_of<stoker::Int64Values>(ours);
  const auto& others = theirs.int64_list().value();
  require(std::equal(values.begin(), values.end(), others.begin(), others.end()));
}

stoker::NamedValues compare(const FeatureView& ours, const Feature& theirs) {
  require(static_cast<int>(ours.kind()) == static_cast<int>(theirs.kind_case()));
  switch (ours.kind()) {
    case FeatureKind::kNone:
      break;
    case FeatureKind::kBytes:
      compare_bytes(ours, theirs);
      return {ours.key(), values_of<stoker::BytesValues>(ours)};
    case FeatureKind::kFloat:
      compare_floats(ours, theirs);
      return {ours.key(), values_of<stoker::FloatValues>(ours)};
    case FeatureKind::kInt64:
      compare_numbers(ours, theirs);
      return {ours.key(), values_of<stoker::Int64Values>(ours)};
  }
  std::abort();
}

// Protobuf for C++ drops what of a number does not fit, where others of its implementations refuse it as ours
// does; and it lets groups nest 100 deep.
bool is_stricter(const std::string& problem) {
  return problem.find("an impossible number") != std::string::npos ||
         problem.find("more than 64 bits") != std::string::npos ||
         problem.find("nested too deeply") != std::string::npos;
}

// The same features without what a reader of ours does not show: those without a list, and unknown fields.
Example shown(const Example& all) {
  Example example;
  for (const auto& [key, feature] : all.features().feature()) {
    if (feature.kind_case() != Feature::KIND_NOT_SET)
      (*example.mutable_features()->mutable_feature())[key] = feature;
  }
  example.DiscardUnknownFields();
  return example;
}

std::string deterministic(const Example& example) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  require(example.SerializeToCodedStream(&out));
  out.Trim();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer quiet;
  Example example;
  const bool theirs = example.ParseFromArray(data, static_cast<int>(size));
  std::optional<std::vector<FeatureView>> ours;
  std::string problem;
  try {
    ours = stoker::parse_example({data, size});
  } catch (const stoker::Error& error) {
    problem = error.what();
  }
  require(theirs || !ours);
  require(ours || !theirs || is_stricter(problem));
  if (!ours) return 0;
  const Example rest = shown(example);
  require(ours->size() == static_cast<size_t>(rest.features().feature().size()));
  std::vector<stoker::NamedValues> features;
  for (const FeatureView& view : *ours) {
    const auto entry = rest.features().feature().find(std::string(view.key()));
    require(entry != rest.features().feature().end());
    features.push_back(compare(view, entry->second));
  }
  if (!features.empty()) require(stoker::write_example(std::move(features)) == deterministic(rest));
  return 0;
}
