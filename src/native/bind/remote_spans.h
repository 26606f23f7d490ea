// Where samples lie in remote storage, as columns.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/remote/remote_reader.h"

namespace stoker::bind {

#define REMOTE_SPANS_SIGNATURE                                                   \
  "def remote_spans(self, numbers: numpy.typing.NDArray[numpy.uint64]) -> "      \
  "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], " \
  "numpy.typing.NDArray[numpy.int64]]"

using Numbers = Column<uint64_t>;

// (file, offset, length) of samples, each int64 (B,); file -1 where nothing has to be fetched. `span_of(i)`
// runs without the GIL. A sample that cannot be located is an error when it is read.
template <typename SpanOf>
nb::tuple remote_spans(size_t count, const SpanOf& span_of) {
  std::vector<int64_t> files(count, -1), offsets(count), lengths(count);
  {
    const WithoutGil nogil;
    for (size_t i = 0; i < count; ++i) {
      RemoteSpan span;
      try {
        span = span_of(i);
      } catch (const Error&) {
        continue;
      }
      constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      if (span.offset > kMost || span.length > kMost - span.offset) continue;
      files[i] = span.file;
      offsets[i] = static_cast<int64_t>(span.offset);
      lengths[i] = static_cast<int64_t>(span.length);
    }
  }
  return nb::make_tuple(give(std::move(files)), give(std::move(offsets)), give(std::move(lengths)));
}

}  // namespace stoker::bind
