#include "bind/given_features.h"

#include <cmath>
#include <string>
#include <string_view>

#include "bind/bind.h"
#include "core/base/errors.h"

namespace stoker::bind {
namespace {

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

}  // namespace stoker::bind
