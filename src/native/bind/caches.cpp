// Binds core/sources/cached_source.h, core/sources/memory_cache.h and core/sources/node_cache.h.
#include <fcntl.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/sources/cached_source.h"
#include "core/sources/memory_cache.h"
#include "core/sources/node_cache.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

// Another descriptor for the same open file, so that the caller's stays its own.
int duplicate(int descriptor) {
  const int made = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (made < 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  return made;
}

void register_counts(nb::module_& m) {
  nb::class_<CacheCounts>(m, "CacheCounts", "What a cache has done so far.")
      .def_ro("hits", &CacheCounts::hits)
      .def_ro("misses", &CacheCounts::misses)
      .def_ro("errors", &CacheCounts::errors)
      .def_ro("bytes", &CacheCounts::bytes)
      .def_ro("full", &CacheCounts::full);
}

}  // namespace

void register_caches(nb::module_& m) {
  register_counts(m);
  nb::class_<SampleCache>(m, "SampleCache", "Keeps the bytes of samples; used by any number of threads.")
      .def("counts", &SampleCache::counts, nb::call_guard<WithoutGil>());
  nb::class_<MemoryCache, SampleCache>(m, "MemoryCache", "Samples of one source in memory.")
      .def(nb::init<uint64_t>(), "budget"_a, "What is held never takes more than `budget` bytes.");
  nb::class_<NodeCacheFile, SampleCache>(m, "NodeCacheFile", "Samples of one source in a file.")
      .def(
          "__init__",
          [](NodeCacheFile* made, int file, int counter, uint64_t budget, const Column<uint64_t>& sizes) {
            const std::vector<uint64_t> each(sizes.data(), sizes.data() + sizes.size());
            OwnDescriptor own_file(duplicate(file));
            const int own_counter = duplicate(counter);
            new (made) NodeCacheFile(own_file.release(), own_counter, budget, each);
          },
          "file"_a, "counter"_a, "budget"_a, "sizes"_a,
          "`file` and `counter` are descriptors, which stay the caller's; nobody else may lock `counter` "
          "through them. `sizes` are the bytes of each sample.")
      .def_prop_ro("file_bytes", &NodeCacheFile::file_bytes, "How long the file has to be.")
      .def_prop_ro("problem", &NodeCacheFile::problem,
                   "What the system refused first; empty: nothing so far.");
  nb::class_<CachedSource, SampleSource>(m, "CachedSource", "A source behind a cache.")
      .def(
          "__init__",
          [](CachedSource* made, std::shared_ptr<SampleSource> source, std::shared_ptr<SampleCache> cache) {
            new (made) CachedSource(std::move(source), std::move(cache));
          },
          "source"_a, "cache"_a, "`source` must check what it reads, since what it gives is kept.")
      .def(
          "read",
          [](const CachedSource& source, uint64_t number) {
            SourceScratch scratch;
            std::span<const uint8_t> bytes;
            {
              WithoutGil nogil;
              bytes = source.fetch(number, scratch);
            }
            return nb::bytes(bytes.data(), bytes.size());
          },
          "number"_a, "The bytes that hold one sample.");
}

}  // namespace stoker::bind
