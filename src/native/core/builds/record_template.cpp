#include "core/builds/record_template.h"

#include <utility>

namespace stoker {

void RecordTemplate::add(const NamedValues& feature) {
  features_.push_back({keep(feature.key), feature.values});
  if (auto* values = std::get_if<BytesValues>(&features_.back().values)) {
    for (auto& value : *values) {
      const auto own = keep({reinterpret_cast<const char*>(value.data()), value.size()});
      value = {reinterpret_cast<const uint8_t*>(own.data()), own.size()};
    }
  }
}

void RecordTemplate::add(std::string_view key, RecordSlot slot) {
  const bool is_number = slot == RecordSlot::kWidth || slot == RecordSlot::kHeight;
  slots_.push_back({features_.size(), slot});
  if (is_number) {
    features_.push_back({keep(key), Int64Values(1)});
  } else {
    features_.push_back({keep(key), BytesValues(1)});
  }
}

ExampleWriter RecordTemplate::fill(const RecordImage& record) const {
  std::vector<NamedValues> features = features_;
  for (const FilledSlot& filled : slots_) {
    auto& values = features[filled.feature].values;
    switch (filled.slot) {
      case RecordSlot::kImage:
        std::get<BytesValues>(values)[0] = record.image;
        break;
      case RecordSlot::kFilename:
        std::get<BytesValues>(values)[0] = record.filename;
        break;
      case RecordSlot::kWidth:
        std::get<Int64Values>(values)[0] = record.width;
        break;
      case RecordSlot::kHeight:
        std::get<Int64Values>(values)[0] = record.height;
        break;
    }
  }
  return ExampleWriter(std::move(features));
}

std::string_view RecordTemplate::keep(std::string_view bytes) {
  return kept_.emplace_back(bytes);
}

}  // namespace stoker
