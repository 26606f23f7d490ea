#include "core/sources/record_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/examples/example.h"
#include "core/examples/fast_features.h"

namespace stoker {
namespace {

// Features in the order they are looked for. Those behind kSource only of raw images, those from kCorners on
// only of objects.
enum Feature : size_t { kImage, kLabel, kSource, kHeight, kWidth, kOrder, kCorners };
constexpr size_t kFeatures = kCorners + 4;

constexpr size_t kEdges = 4;
constexpr std::array<size_t, kEdges> kPackedEdge{1, 0, 3, 2};  // of xmin, ymin, xmax, ymax in TFDS's order
constexpr std::string_view kBoxes = "bbox";

[[noreturn]] void refuse_example(const std::string& what) {
  throw Error(ErrorCode::kBadExample, what);
}

// A side of an image; 0 for what cannot be one.
int32_t side(int64_t value) {
  return value > 0 && value <= std::numeric_limits<int32_t>::max() ? static_cast<int32_t>(value) : 0;
}

Extent square(size_t bytes) {
  const auto length = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(bytes / kRgbBytes))));
  return {side(length), side(length)};
}

TensorOrder order_of(const FeatureView& view) {
  if (view.kind() == FeatureKind::kNone) return TensorOrder::kHwc;
  const auto bytes = view.first_bytes();
  const std::string text(bytes.begin(), bytes.end());
  if (text == "HWC") return TensorOrder::kHwc;
  if (text == "CHW") return TensorOrder::kChw;
  refuse_example("the pixels are in the order '" + text.substr(0, 16) + "'; it must be HWC or CHW");
}

void check_length(const StoredImage& image, int64_t height, int64_t width) {
  if (fits(image)) return;
  refuse_example(std::to_string(image.bytes.size()) + " bytes of pixels are not " + std::to_string(height) +
                 " x " + std::to_string(width) + " x 3 (height, width, channels)");
}

// An edge of an object, of a list that has `stride` values of each, from `edge` on.
float value_at(const FeatureView& view, int32_t object, size_t stride, size_t edge,
               std::vector<float>& values) {
  values.clear();
  if (view.kind() != FeatureKind::kNone) view.append_to(values);
  const size_t at = static_cast<size_t>(std::max(object, 0)) * stride + edge;
  if (object >= 0 && at < values.size()) return values[at];
  refuse_example("there is no object " + std::to_string(object) + ": '" + std::string(view.key()) + "' has " +
                 std::to_string(values.size()) + " values");
}

void check_as_many(std::string_view key, size_t values, size_t boxes) {
  if (values == boxes) return;
  refuse_example("'" + std::string(key) + "' has " + std::to_string(values) + " values for " +
                 std::to_string(boxes) + " boxes");
}

}  // namespace

RecordSource::RecordSource(std::shared_ptr<const RecordSet> records, RecordKeys keys, PayloadCheck check)
    : records_(std::move(records)), keys_(std::move(keys)), check_(check) {
  const char* names[] = {"xmin", "ymin", "xmax", "ymax"};
  const std::string& prefix = keys_.box_prefix;
  packed_ = !prefix.empty() && prefix.back() != '/';
  const size_t last = prefix.rfind(kBoxes);
  const std::string above = last == std::string::npos ? std::string() : prefix.substr(0, last);
  if (packed_) {
    corners_[0] = prefix;
    box_label_ = above + "label";
    return;
  }
  for (size_t i = 0; i < kEdges; ++i) corners_[i] = prefix + names[i];
  box_label_ = prefix + "label";
  if (last != std::string::npos)
    box_class_ = above + "class/label";  // as TensorFlow's object detection has it
}

std::span<const uint8_t> RecordSource::fetch(uint64_t number, SourceScratch& scratch) const {
  if (check_ == PayloadCheck::kOff) return records_->read(number, check_, scratch);
  const auto payload = keys_.encoding == ImageEncoding::kRaw ? records_->read_pixels(number, scratch)
                                                             : records_->read(number, check_, scratch);
  scratch.crc = stated_crc(payload);
  return payload;
}

FetchedSample RecordSource::fetch_unchecked(uint64_t number, SourceScratch& scratch) const {
  FetchedSample fetched = records_->read_unchecked(number, scratch);
  if (check_ == PayloadCheck::kOff) fetched.crc.reset();
  return fetched;
}

void RecordSource::shape(StoredImage& image, std::span<const Wanted> wanted) const {
  image.encoding = ImageEncoding::kRaw;
  if (keys_.height.empty() || keys_.width.empty()) {
    image.size = square(image.bytes.size());
    check_length(image, image.size.height, image.size.width);
  } else {
    const int64_t height = wanted[kHeight].view.first_int64(), width = wanted[kWidth].view.first_int64();
    image.size = {side(width), side(height)};
    check_length(image, height, width);
  }
  if (!keys_.order.empty()) image.order = order_of(wanted[kOrder].view);
}

bool RecordSource::shape(StoredImage& image, std::span<const FastFeature> seen) const {
  const FastFeature &height = seen[kHeight], &width = seen[kWidth], &order = seen[kOrder];
  if (height.kind != FeatureKind::kInt64 || width.kind != FeatureKind::kInt64) return false;
  image.encoding = ImageEncoding::kRaw;
  image.size = {side(width.number), side(height.number)};
  if (keys_.order.empty() || order.kind == FeatureKind::kNone) return fits(image);
  if (order.kind != FeatureKind::kBytes) return false;
  const std::string_view text(reinterpret_cast<const char*>(order.bytes.data()), order.bytes.size());
  image.order = text == "CHW" ? TensorOrder::kChw : TensorOrder::kHwc;
  return (text == "HWC" || text == "CHW") && fits(image);
}

size_t RecordSource::feature_count() const {
  return keys_.encoding == ImageEncoding::kRaw ? kCorners : kHeight;
}

std::optional<SourceSample> RecordSource::describe_fast(std::span<const uint8_t> bytes,
                                                        std::span<FastFeature> seen,
                                                        std::string& name) const {
  const bool raw = keys_.encoding == ImageEncoding::kRaw, labelled = !keys_.label.key.empty();
  const bool square_tensor = raw && (keys_.height.empty() || keys_.width.empty());
  if (keys_.label.encoding != LabelEncoding::kId || square_tensor) return std::nullopt;
  const std::string_view keys[] = {keys_.image,  keys_.label.key, keys_.source,
                                   keys_.height, keys_.width,     keys_.order};
  for (size_t i = 0; i < feature_count(); ++i) seen[i].key = keys[i];
  if (!find_features_fast(bytes, seen)) return std::nullopt;
  if (seen[kImage].kind != FeatureKind::kBytes) return std::nullopt;
  if (labelled && seen[kLabel].kind != FeatureKind::kInt64) return std::nullopt;
  SourceSample sample;
  sample.image.bytes = seen[kImage].bytes;
  if (labelled) sample.label = seen[kLabel].number;
  if (raw && !shape(sample.image, seen)) return std::nullopt;
  const FastFeature& source = seen[kSource];
  if (source.kind == FeatureKind::kBytes) name.assign(source.bytes.begin(), source.bytes.end());
  return sample;
}

SourceSample RecordSource::describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                                    std::string& name) const {
  const bool raw = keys_.encoding == ImageEncoding::kRaw, object = id.object != kWholeImage;
  if (!object) {
    std::array<FastFeature, kCorners> seen;
    if (const auto sample = describe_fast(bytes, std::span(seen).first(feature_count()), name))
      return *sample;
  }
  std::array<Wanted, kFeatures> wanted{{{keys_.image, {}},
                                        {keys_.label.key, {}},
                                        {keys_.source, {}},
                                        {keys_.height, {}},
                                        {keys_.width, {}},
                                        {keys_.order, {}},
                                        {corners_[0], {}},
                                        {corners_[1], {}},
                                        {corners_[2], {}},
                                        {corners_[3], {}}}};
  find_features(bytes, std::span(wanted).first(object ? kFeatures : raw ? kCorners : kHeight));
  const FeatureView& source = wanted[kSource].view;
  if (source.kind() == FeatureKind::kBytes && source.count() > 0) {
    const auto text = source.first_bytes();
    name.assign(text.begin(), text.end());
  }
  SourceSample sample;
  sample.image.bytes = wanted[kImage].view.first_bytes();
  if (!keys_.label.key.empty()) {
    sample.label = label_of(wanted[kLabel].view, keys_.label, scratch.numbers);
  }
  if (raw) shape(sample.image, wanted);
  if (object) {
    const auto value = [&](size_t corner) {
      if (packed_)
        return value_at(wanted[kCorners].view, id.object, kEdges, kPackedEdge[corner], scratch.fractions);
      return value_at(wanted[kCorners + corner].view, id.object, 1, 0, scratch.fractions);
    };
    sample.image.object = ObjectBox{value(0), value(1), value(2), value(3)};
  }
  return sample;
}

SourceSample RecordSource::describe_with_fields(SampleId id, std::span<const uint8_t> bytes,
                                                const FieldSpec& spec, SourceScratch& scratch,
                                                std::string& name, RecordFields& fields) const {
  if (id.object == kWholeImage) {
    fields.fast.assign(feature_count(), {});
    append_wanted(spec, fields.fast);
    const auto sample = describe_fast(bytes, fields.fast, name);
    if (sample && take_fields(std::span(fields.fast).subspan(feature_count()), spec, fields)) return *sample;
  }
  return SampleSource::describe_with_fields(id, bytes, spec, scratch, name, fields);
}

void RecordSource::append_boxes(uint64_t, std::span<const uint8_t> bytes, int64_t label,
                                SourceScratch& scratch, std::vector<LabelledBox>& boxes) const {
  if (keys_.box_prefix.empty()) return;
  std::array<Wanted, 6> wanted{{{corners_[0], {}},
                                {corners_[1], {}},
                                {corners_[2], {}},
                                {corners_[3], {}},
                                {box_label_, {}},
                                {box_class_, {}}}};
  find_features(bytes, wanted);
  const size_t first = boxes.size();
  float ObjectBox::* const edges[] = {&ObjectBox::xmin, &ObjectBox::ymin, &ObjectBox::xmax, &ObjectBox::ymax};
  for (size_t i = 0; i < (packed_ ? 1 : kEdges); ++i) {
    scratch.fractions.clear();
    const FeatureView& view = wanted[i].view;
    if (view.kind() != FeatureKind::kNone) view.append_to(scratch.fractions);
    const size_t count = scratch.fractions.size();
    if (packed_ && count % kEdges != 0) {
      refuse_example("'" + keys_.box_prefix + "' has " + std::to_string(count) +
                     " values, which are not four for each box");
    }
    if (i == 0) boxes.resize(first + (packed_ ? count / kEdges : count), {.box = {}, .label = label});
    if (!packed_) check_as_many(wanted[i].key, count, boxes.size() - first);
    for (size_t k = first; k < boxes.size(); ++k) {
      if (packed_) {
        const float* four = &scratch.fractions[(k - first) * kEdges];
        for (size_t edge = 0; edge < kEdges; ++edge) boxes[k].box.*edges[edge] = four[kPackedEdge[edge]];
      } else {
        boxes[k].box.*edges[i] = scratch.fractions[k - first];
      }
    }
  }
  const bool by_class = wanted[4].view.kind() == FeatureKind::kNone && !box_class_.empty();
  const Wanted& labels = wanted[by_class ? 5 : 4];
  if (labels.view.kind() == FeatureKind::kNone) return;
  scratch.numbers.clear();
  labels.view.append_to(scratch.numbers);
  check_as_many(labels.key, scratch.numbers.size(), boxes.size() - first);
  for (size_t k = 0; k < scratch.numbers.size(); ++k) boxes[first + k].label = scratch.numbers[k];
}

}  // namespace stoker
