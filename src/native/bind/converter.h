// A function of Python that makes JPEGs of other images, as the core calls it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/engine/engine_spec.h"

namespace stoker::bind {

using Converter = nb::typed<nb::callable, nb::bytes(nb::bytes)>;

// The error of the core for what a converter has raised. Needs the GIL.
inline Error converter_error(const nb::python_error& raised) {
  const std::string what = nb::str(raised.value()).c_str();
  const nb::object errors = nb::module_::import_("stoker.errors");
  if (raised.matches(errors.attr("ImageTooLargeError"))) return {ErrorCode::kImageTooLarge, what};
  if (raised.matches(errors.attr("ImageError"))) return {ErrorCode::kBadImage, what};
  const std::string name = nb::str(raised.type().attr("__name__")).c_str();
  return {ErrorCode::kCallback, "the converter of images that are no JPEG raised " + name + ": " + what};
}

inline std::vector<uint8_t> call_converter(const nb::callable& convert, std::span<const uint8_t> image) {
  const nb::gil_scoped_acquire gil;
  try {
    const nb::bytes made = nb::cast<nb::bytes>(convert(nb::bytes(image.data(), image.size())));
    const auto* bytes = static_cast<const uint8_t*>(made.data());
    return {bytes, bytes + made.size()};
  } catch (const nb::python_error& raised) {
    throw converter_error(raised);
  } catch (const nb::cast_error&) {
    throw Error(ErrorCode::kCallback, "the converter of images that are no JPEG returned no bytes");
  }
}

// The callable is shared, so that copies of the function need no GIL. Letting go of it does.
inline ConvertImage converter(std::optional<Converter> convert) {
  if (!convert) return {};
  const auto let_go = [](nb::callable* callable) {
    const nb::gil_scoped_acquire gil;
    delete callable;
  };
  const std::shared_ptr<nb::callable> held(new nb::callable(*std::move(convert)), let_go);
  return [held](std::span<const uint8_t> image) { return call_converter(*held, image); };
}

}  // namespace stoker::bind
