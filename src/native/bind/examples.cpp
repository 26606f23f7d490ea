// Binds core/examples/example.h, and the frame of core/shards/tfrecord.h around an Example.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/given_features.h"
#include "core/base/errors.h"
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

std::string_view utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);  // kept by the string itself
  if (data == nullptr) throw nb::python_error();                  // lone surrogates: UnicodeEncodeError
  return {data, static_cast<size_t>(size)};
}

GivenFeature given(nb::handle key, nb::handle value) {
  if (!nb::isinstance<nb::str>(key)) throw nb::type_error("the name of a feature must be a str");
  const bool pair = nb::isinstance<nb::tuple>(value) && nb::len(value) == 2 &&
                    nb::isinstance<nb::str>(value[0]) && nb::isinstance<nb::list>(value[1]);
  if (!pair) {
    throw nb::type_error(
        ("feature '" + std::string(utf8_of(key)) + "' must be a tuple (kind, list of values)").c_str());
  }
  return {nb::borrow<nb::str>(key), nb::borrow<nb::str>(value[0]), nb::tuple(nb::handle(value[1]))};
}

// Raises TypeError for a value that Python could not convert.
[[noreturn]] void refuse_type(const GivenFeature& feature, nb::handle value) {
  nb::python_error cause;
  nb::raise_from(cause, PyExc_TypeError, "feature '%s' of kind %s holds a value of type %s",
                 std::string(utf8_of(feature.key)).c_str(), std::string(utf8_of(feature.kind)).c_str(),
                 nb::type_name(value.type()).c_str());
}

[[noreturn]] void refuse_value(const GivenFeature& feature, nb::handle value, const char* kind) {
  throw Error(ErrorCode::kBadArgument, "feature '" + std::string(utf8_of(feature.key)) + "' holds " +
                                           std::string(utf8_of(nb::repr(value))) + ", which does not fit " +
                                           kind);
}

void append_to(BytesValues& out, const GivenFeature& feature, nb::handle value) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(value.ptr(), &data, &size) != 0) refuse_type(feature, value);
  out.emplace_back(reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(size));
}

void append_to(Int64Values& out, const GivenFeature& feature, nb::handle value) {
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) refuse_type(feature, value);
  int overflow = 0;
  out.push_back(PyLong_AsLongLongAndOverflow(number.ptr(), &overflow));
  if (overflow != 0) refuse_value(feature, value, "64 bits");
}

void append_to(FloatValues& out, const GivenFeature& feature, nb::handle value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) refuse_type(feature, value);
  out.push_back(static_cast<float>(number));
  if (std::isfinite(number) && !std::isfinite(out.back())) refuse_value(feature, value, "a 32-bit float");
}

template <typename Values>
Values convert(const GivenFeature& feature) {
  Values out;
  out.reserve(nb::len(feature.values));
  for (nb::handle value : feature.values) append_to(out, feature, value);
  return out;
}

NamedValues convert(const GivenFeature& feature) {
  const std::string_view key = utf8_of(feature.key);
  const std::string_view kind = utf8_of(feature.kind);
  if (kind == kind_name(FeatureKind::kBytes)) return {key, convert<BytesValues>(feature)};
  if (kind == kind_name(FeatureKind::kFloat)) return {key, convert<FloatValues>(feature)};
  if (kind == kind_name(FeatureKind::kInt64)) return {key, convert<Int64Values>(feature)};
  throw Error(ErrorCode::kBadArgument, "feature '" + std::string(key) + "' has kind '" + std::string(kind) +
                                           "'; it must be bytes, float or int64");
}

}  // namespace

GivenFeatures::GivenFeatures(const nb::dict& features) {
  for (nb::handle item : features.items()) kept_.push_back(given(item[0], item[1]));
  values_.reserve(kept_.size());
  for (const GivenFeature& feature : kept_) values_.push_back(convert(feature));
}

namespace {

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
