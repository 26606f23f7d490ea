// Any bytes as an Example: an error of ours, or features that survive being written and read again; finding a
// feature, or the fast path, agrees with reading them all; what a sample says of itself, every transform may
// rely on; and a field has as many values as it must, the bytes of an image among those of the payload.
#include "core/examples/example.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/pixels.h"
#include "core/examples/fast_features.h"
#include "core/sources/record_source.h"
#include "core/transforms/transform_decoder.h"
#include "fuzz/invariant.h"

namespace {

using stoker::FeatureKind;
using stoker::FeatureView;
using stoker::fuzz::require;
using stoker::fuzz::succeeds;

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

// The same of lists, but for numbers that are damaged, which the fast path does not check.
void lists(std::span<const uint8_t> payload, std::span<const stoker::Wanted> wanted, bool parsed) {
  std::vector<stoker::FastFeature> seen;
  for (const stoker::Wanted& feature : wanted) seen.push_back({.key = feature.key, .list = true});
  if (!stoker::find_features_fast(payload, seen)) return;
  std::vector<std::vector<int64_t>> numbers(seen.size());
  bool whole = true;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].kind == FeatureKind::kInt64 && !stoker::unpack(seen[i].bytes, numbers[i])) whole = false;
  }
  require(whole == parsed);
  if (!parsed) return;
  for (size_t i = 0; i < seen.size(); ++i) {
    const FeatureView& view = wanted[i].view;
    require(seen[i].kind == view.kind());
    if (seen[i].kind == FeatureKind::kBytes) require(std::ranges::equal(seen[i].bytes, view.first_bytes()));
    if (seen[i].kind == FeatureKind::kInt64) require(numbers[i] == values_of<stoker::Int64Values>(view));
    if (seen[i].kind != FeatureKind::kFloat) continue;
    const auto fractions = values_of<stoker::FloatValues>(view);
    require(seen[i].bytes.size() == fractions.size() * sizeof(float));
    if (!fractions.empty())
      require(std::memcmp(seen[i].bytes.data(), fractions.data(), seen[i].bytes.size()) == 0);
  }
}

// Where the fast path succeeds, it agrees with find_features().
void find(std::span<const uint8_t> payload) {
  stoker::Wanted wanted[] = {{"", {}}, {"i", {}}, {"l", {}}, {"b/xmin", {}}};
  const bool parsed = succeeds([&] { stoker::find_features(payload, wanted); });
  stoker::FastFeature seen[] = {{""}, {"i"}, {"l"}, {"b/xmin"}};
  lists(payload, wanted, parsed);
  if (!stoker::find_features_fast(payload, seen)) return;
  require(parsed);
  for (size_t i = 0; i < std::size(seen); ++i) {
    const FeatureView& view = wanted[i].view;
    require(seen[i].kind == view.kind());
    if (seen[i].kind == FeatureKind::kBytes) require(std::ranges::equal(seen[i].bytes, view.first_bytes()));
    if (seen[i].kind == FeatureKind::kInt64) require(seen[i].number == view.first_int64());
  }
}

// Each kind of column and plane, of each feature that the targets look for.
void read_fields(std::span<const uint8_t> payload) {
  static stoker::RecordFields fields;
  for (const char* key : {"i", "l", "h"}) {
    for (const FeatureKind kind : {FeatureKind::kBytes, FeatureKind::kFloat, FeatureKind::kInt64}) {
      for (const size_t group : {size_t{1}, size_t{3}}) {
        for (const bool fixed : {false, true}) {
          const bool text = kind == FeatureKind::kBytes && group == 1;
          const stoker::FieldSpec spec{{{key, kind, stoker::ColumnForm::kValues, text, fixed, group}}, {}};
          if (!succeeds([&] { stoker::read_fields(payload, spec, fields); })) continue;
          const size_t values = fields.columns[0].size() / spec.columns[0].value_bytes();
          require(fixed ? values == group : values % group == 0);
        }
      }
    }
    for (const unsigned bits : {0U, 8U, 16U}) {
      if (!succeeds([&] { stoker::read_fields(payload, {{}, {{key, bits}}}, fields); })) continue;
      const auto file = fields.planes[0];
      require(file.empty() || (file.data() >= payload.data() &&
                               file.data() + file.size() <= payload.data() + payload.size()));
    }
  }
}

stoker::RecordSource tensors(const std::string& box_prefix) {
  stoker::RecordKeys keys;
  keys.image = "i";
  keys.label = {"l", stoker::LabelEncoding::kOneHot, 1};
  keys.source = "s";
  keys.encoding = stoker::ImageEncoding::kRaw;
  keys.height = "h";
  keys.width = "w";
  keys.order = "o";
  keys.box_prefix = box_prefix;
  return {std::make_shared<stoker::RecordSet>(), keys, stoker::PayloadCheck::kOff};
}

// The payload as a tensor with an object: its pixels are inside the payload, whatever its numbers say.
void show(const stoker::RecordSource& source, std::span<const uint8_t> payload) {
  stoker::SourceScratch scratch;
  stoker::TransformDecoder decoder;
  const stoker::TransformSpec transform(
      {"ObjectCrops", {{"size", std::vector<double>{3, 5}}, {"filter", "bilinear"}}});
  std::vector<stoker::LabelledBox> boxes;
  std::vector<stoker::TransformedBox> shown;
  std::vector<uint8_t> out(5 * 3 * stoker::kRgbBytes);
  for (const int32_t object : {stoker::kWholeImage, 0, 1}) {
    std::string name;
    succeeds([&] {
      const auto sample = source.describe({0, object}, payload, scratch, name);
      const stoker::RgbSlot slot{out.data(), 5 * stoker::kRgbBytes};
      decoder.decode(sample.image, {&transform, 1}, stoker::SampleRandom(0, 0, 0), stoker::kDefaultMaxPixels,
                     {&slot, 1});
      source.append_boxes(0, payload, sample.label, scratch, boxes);
      stoker::transform_boxes(decoder.plans()[0], decoder.size(), boxes, 0.0, shown);
      for (const stoker::TransformedBox& box : shown) {
        require(0 <= box.xmin && box.xmin <= box.xmax && box.xmax <= 5 && 0 <= box.ymin && box.ymax <= 3);
      }
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  find({data, size});
  read_fields({data, size});
  static const stoker::RecordSource lists = tensors("b/"), packed = tensors("b");
  show(lists, {data, size});
  show(packed, {data, size});
  std::string first;
  if (!succeeds([&] { first = canonical({data, size}); })) return 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(first.data());
  require(canonical({bytes, first.size()}) == first);
  return 0;
}
