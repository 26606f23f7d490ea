// Binds core/examples/example.h, and the frame of core/shards/tfrecord.h around an Example.
#include <algorithm>
#include <span>
#include <vector>

#include "bind/bind.h"
#include "bind/given_features.h"
#include "core/examples/example.h"
#include "core/shards/tfrecord.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

nb::object to_python(std::span<const uint8_t> value) {
  return nb::bytes(value.data(), value.size());
}
nb::object to_python(float value) {
  return nb::float_(static_cast<double>(value));
}
nb::object to_python(int64_t value) {
  return nb::int_(value);
}

template <typename Value>
nb::list values_of(const FeatureView& view) {
  std::vector<Value> values;
  view.append_to(values);
  nb::list out;
  for (const Value& value : values) out.append(to_python(value));
  return out;
}

nb::list values_of(const FeatureView& view) {
  switch (view.kind()) {
    case FeatureKind::kNone:
      break;
    case FeatureKind::kBytes:
      return values_of<std::span<const uint8_t>>(view);
    case FeatureKind::kFloat:
      return values_of<float>(view);
    case FeatureKind::kInt64:
      return values_of<int64_t>(view);
  }
  return {};
}

nb::dict parse(const ByteView& payload) {
  nb::dict out;
  for (const FeatureView& view : parse_example(bytes_of(payload))) {
    out[nb::str(view.key().data(), view.key().size())] =
        nb::make_tuple(kind_name(view.kind()), values_of(view));
  }
  return out;
}

// A bytes object with an Example in it, and `before` and `after` it bytes that `surround` fills.
template <typename Surround>
nb::bytes write(const nb::dict& features, size_t before, size_t after, Surround surround) {
  const GivenFeatures given(features);  // alive until the bytes are written
  const ExampleWriter writer(given.values());
  const size_t size = before + writer.size() + after;
  nb::bytes out = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!out.is_valid()) throw nb::python_error();
  // No other code has seen this object yet, and what the features borrow never changes: no GIL is needed.
  const std::span<uint8_t> bytes{reinterpret_cast<uint8_t*>(PyBytes_AsString(out.ptr())), size};
  without_gil_from(size, [&] {
    const auto payload = bytes.subspan(before, writer.size());
    writer.write(payload);
    surround(payload, bytes);
  });
  return out;
}

nb::bytes write_plain(const nb::dict& features) {
  return write(features, 0, 0, [](std::span<const uint8_t>, std::span<uint8_t>) {});
}

nb::bytes write_framed(const nb::dict& features) {
  const auto surround = [](std::span<const uint8_t> payload, std::span<uint8_t> out) {
    std::ranges::copy(frame_header(payload.size()), out.begin());
    std::ranges::copy(frame_footer(payload), out.end() - kFrameFooterBytes);
  };
  return write(features, kFrameHeaderBytes, kFrameFooterBytes, surround);
}

}  // namespace

void register_examples(nb::module_& m) {
  m.def("write_example", &write_plain, "features"_a,
        nb::sig("def write_example(features: stoker.types.Features) -> bytes"),
        "Canonical bytes of a tf.train.Example: keys sorted by their UTF-8 bytes, numbers packed.");
  m.def("frame_example", &write_framed, "features"_a,
        nb::sig("def frame_example(features: stoker.types.Features) -> bytes"),
        "frame_record(write_example(features)), written once.");
  m.def("parse_example", &parse, "payload"_a.noconvert(),
        nb::sig("def parse_example(payload: collections.abc.Buffer) -> stoker.types.Features"),
        "All features of a tf.train.Example that hold a list, by name.");
}

}  // namespace stoker::bind
