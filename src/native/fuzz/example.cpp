// Any bytes as an Example: an error of ours, or features that survive being written and read again; finding a
// feature agrees with reading them all; and what a sample says of itself, every view may rely on.
#include "core/example.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/record_source.h"
#include "core/view_decoder.h"

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

stoker::RecordSource tensors() {
  stoker::RecordKeys keys;
  keys.image = "i";
  keys.label = {"l", stoker::LabelEncoding::kOneHot, 1};
  keys.source = "s";
  keys.encoding = stoker::ImageEncoding::kRaw;
  keys.height = "h";
  keys.width = "w";
  keys.order = "o";
  keys.box_prefix = "b";
  return {std::make_shared<stoker::RecordSet>(), keys, stoker::PayloadCheck::kOff};
}

// The payload as a tensor with an object: its pixels are inside the payload, whatever its numbers say.
void show(std::span<const uint8_t> payload) {
  static const stoker::RecordSource source = tensors();
  stoker::SourceScratch scratch;
  stoker::ViewDecoder decoder;
  const stoker::ViewSpec view{.kind = stoker::ViewKind::kObjectCrop, .out = {5, 3}};
  std::vector<stoker::LabelledBox> boxes;
  std::vector<stoker::ViewBox> shown;
  std::vector<uint8_t> out(5 * 3 * stoker::kRgbBytes);
  for (const int32_t object : {stoker::kWholeImage, 0, 1}) {
    std::string name;
    try {
      const auto sample = source.describe({0, object}, payload, scratch, name);
      const stoker::RgbSlot slot{out.data(), 5 * stoker::kRgbBytes};
      decoder.decode(sample.image, {&view, 1}, stoker::SampleRandom(0, 0, 0), stoker::kDefaultMaxPixels,
                     {&slot, 1});
      source.append_boxes(0, payload, sample.label, scratch, boxes);
      stoker::transform_boxes(decoder.plans()[0], decoder.size(), boxes, 0.0, shown);
      for (const stoker::ViewBox& box : shown) {
        require(0 <= box.xmin && box.xmin <= box.xmax && box.xmax <= 5 && 0 <= box.ymin && box.ymax <= 3);
      }
    } catch (const stoker::Error&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  find({data, size});
  show({data, size});
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
