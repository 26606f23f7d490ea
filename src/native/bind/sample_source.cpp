// Binds core/sources/sample_source.h, core/sources/record_source.h and core/sources/concatenation.h.
#include "core/sources/sample_source.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/sources/concatenation.h"
#include "core/sources/record_source.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

LabelEncoding label_encoding(const std::string& name) {
  if (name == "id") return LabelEncoding::kId;
  if (name == "one-hot") return LabelEncoding::kOneHot;
  throw Error(ErrorCode::kBadArgument, "Unknown label encoding " + name + "; use id or one-hot");
}

ImageEncoding image_encoding(const std::string& name) {
  if (name == "jpeg") return ImageEncoding::kJpeg;
  if (name == "raw") return ImageEncoding::kRaw;
  throw Error(ErrorCode::kBadArgument, "Unknown image encoding " + name + "; use jpeg or raw");
}

void register_record_keys(nb::module_& m) {
  nb::class_<RecordKeys>(m, "RecordKeys", "Where records hold what; an empty key is one they do not have.")
      .def(
          "__init__",
          [](RecordKeys* keys, const std::string& image_key, const std::string& label_key,
             const std::string& source_key, const std::string& labels, int64_t label_base,
             const std::string& images, const std::string& height_key, const std::string& width_key,
             const std::string& order_key, const std::string& box_prefix) {
            new (keys) RecordKeys{.image = image_key,
                                  .label = {label_key, label_encoding(labels), label_base},
                                  .source = source_key,
                                  .encoding = image_encoding(images),
                                  .height = height_key,
                                  .width = width_key,
                                  .order = order_key,
                                  .box_prefix = box_prefix};
          },
          nb::kw_only(), "image_key"_a, "label_key"_a = "", "source_key"_a = "", "label_encoding"_a = "id",
          "label_base"_a = 0, "image_encoding"_a = "jpeg", "height_key"_a = "", "width_key"_a = "",
          "order_key"_a = "", "box_prefix"_a = "");
}

using Part = std::pair<std::shared_ptr<SampleSource>, int64_t>;

}  // namespace

void register_sample_source(nb::module_& m) {
  register_record_keys(m);
  nb::class_<SampleSource>(m, "SampleSource", "Images with their labels and boxes, by number.")
      .def("__len__", &SampleSource::size);
  nb::class_<RecordSource, SampleSource>(m, "RecordSource", "The samples that records of shards hold.")
      .def(
          "__init__",
          [](RecordSource* source, std::shared_ptr<RecordSet> records, RecordKeys keys, bool check) {
            new (source) RecordSource(std::move(records), std::move(keys),
                                      check ? PayloadCheck::kOn : PayloadCheck::kOff);
          },
          "records"_a, "keys"_a, "check"_a = true, "With `check`, the checksum of every record is verified.");
  nb::class_<Concatenation, SampleSource>(m, "Concatenation", "Several sources as one, end to end.")
      .def(
          "__init__",
          [](Concatenation* made, const std::vector<Part>& parts) {
            std::vector<SourcePart> all;
            for (const auto& [source, offset] : parts) all.push_back({source, offset});
            new (made) Concatenation(std::move(all));
          },
          "parts"_a, "Each part is a source and what is added to its labels.");
}

}  // namespace stoker::bind
