// Binds core/sources/file_set.h.
#include "core/sources/file_set.h"

#include <nanobind/stl/shared_ptr.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

using Corners = nb::ndarray<const float, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(ObjectBox) == 4 * sizeof(float), "rows of boxes are copied as they are");

template <typename T>
std::vector<T> copy(const Column<T>& column) {
  return {column.data(), column.data() + column.size()};
}

}  // namespace

void register_file_set(nb::module_& m) {
  nb::class_<FileSet, SampleSource>(m, "FileSet",
                                    "Random access to images that are files, or lie in archives.")
      .def(
          "__init__",
          [](FileSet* set, nb::handle base, const nb::bytes& names, const Column<int64_t>& starts,
             const Column<int64_t>& labels, const Column<int64_t>& sizes, const nb::list& archives,
             const Column<int32_t>& archive_of, const Column<int64_t>& offsets) {
            FileList list{.base = system_path(base),
                          .names = std::string(names.c_str(), names.size()),
                          .starts = copy(starts),
                          .labels = copy(labels),
                          .sizes = copy(sizes),
                          .archives = {},
                          .archive_of = copy(archive_of),
                          .offsets = copy(offsets)};
            for (const nb::handle archive : archives) list.archives.push_back(system_path(archive));
            new (set) FileSet(std::move(list));
          },
          "base"_a, "names"_a, "starts"_a, "labels"_a, "sizes"_a, "archives"_a, "archive_of"_a, "offsets"_a,
          nb::sig("def __init__(self, base: str, names: bytes, starts: numpy.typing.NDArray[numpy.int64], "
                  "labels: numpy.typing.NDArray[numpy.int64], sizes: numpy.typing.NDArray[numpy.int64], "
                  "archives: list[str], archive_of: numpy.typing.NDArray[numpy.int32], "
                  "offsets: numpy.typing.NDArray[numpy.int64]) -> None"),
          "Name i is names[starts[i]:starts[i + 1]], below `base` unless it begins with '/'; archive_of is "
          "-1 "
          "for a file of its own.")
      .def(
          "set_boxes",
          [](FileSet& set, const Column<int64_t>& starts, const Corners& boxes) {
            std::vector<ObjectBox> rows(boxes.shape(0));
            if (!rows.empty()) std::memcpy(rows.data(), boxes.data(), rows.size() * sizeof(ObjectBox));
            set.set_boxes(copy(starts), std::move(rows));
          },
          "starts"_a, "boxes"_a,
          "Tell the objects: those of image i are rows starts[i]:starts[i + 1], each xmin, ymin, xmax, ymax.")
      .def(
          "set_remote",
          [](FileSet& set, std::shared_ptr<RemoteReader> reader, int64_t first) {
            set.set_remote({std::move(reader), first});
          },
          "reader"_a, "first"_a,
          "Archives and files are remote, numbered from `first` on: the archives, then one for each image.")
      .def(
          "read",
          [](const FileSet& set, uint64_t index) {
            SourceScratch scratch;
            std::span<const uint8_t> bytes;
            {
              WithoutGil nogil;
              bytes = set.fetch(index, scratch);
            }
            return nb::bytes(bytes.data(), bytes.size());
          },
          "index"_a, "The bytes of one image file.")
      .def(
          "where", [](const FileSet& set, uint64_t index) { return place(set.where(index)); }, "index"_a,
          nb::sig("def where(self, index: int) -> tuple[str, int, int]"),
          "The path of the file or of its archive, -1, and the offset in the archive in bytes.");
}

}  // namespace stoker::bind
