// Any bytes as an Example: an error of ours, or features that survive being written and read again; and
// finding a feature agrees with reading them all.
#include "core/example.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/errors.h"

namespace {

using stoker::FeatureKind;
using stoker::FeatureView;

void require(bool law) {
  if (!law) std::abort();
}

template <typename Values>
Values values_of(const FeatureView& view) {
  Values values;
  view.append_to(values);
  require(values.size() == view.count());
  return values;
}

stoker::NamedValues named_values(const FeatureView& view) {
  switch (view.kind()) {
    case FeatureKind::kNone:
      break;
    case FeatureKind::kBytes:
      return {view.key(), values_of<stoker::BytesValues>(view)};
    case FeatureKind::kFloat:
      return {view.key(), values_of<stoker::FloatValues>(view)};
    case FeatureKind::kInt64:
      return {view.key(), values_of<stoker::Int64Values>(view)};
  }
  std::abort();  // reading everything gives only features that hold a list
}

std::string canonical(std::span<const uint8_t> payload) {
  std::vector<stoker::NamedValues> features;
  for (const FeatureView& view : stoker::parse_example(payload)) {
    stoker::Wanted wanted{view.key(), {}};
    stoker::find_features(payload, {&wanted, 1});
    require(wanted.view.kind() == view.kind() && wanted.view.count() == view.count());
    features.push_back(named_values(view));
  }
  return stoker::write_example(std::move(features));
}

void find(std::span<const uint8_t> payload) {
  stoker::Wanted wanted[] = {{"", {}}, {"a", {}}};
  try {
    stoker::find_features(payload, wanted);
  } catch (const stoker::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  find({data, size});
  std::string first;
  try {
    first = canonical({data, size});
  } catch (const stoker::Error&) {
    return 0;
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(first.data());
  require(canonical({bytes, first.size()}) == first);
  return 0;
}
