// Every allocation fails once, and once with all that follow: each time std::bad_alloc, never the end of the
// process or a wait without end; nothing is left behind, and what goes on gives the right pixels.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/decode_loop.h"
#include "core/base/errors.h"
#include "core/engine/engine.h"
#include "core/examples/example.h"
#include "core/images/image_decoder.h"
#include "core/jpeg/transcode.h"
#include "core/remote/remote_ranges.h"
#include "core/resize/resample_tf1.h"
#include "core/sources/concatenation.h"
#include "core/sources/file_set.h"
#include "core/sources/node_cache.h"
#include "core/sources/record_scan.h"
#include "core/sources/record_source.h"
#include "core/threads/share_work.h"
#include "core/transforms/reencode.h"
#include "core/transforms/transform_decoder.h"
#include "tests/counted_source.h"
#include "tests/failing_memory.h"
#include "tests/image_files.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/regions.h"
#include "tests/rounds.h"
#include "tests/shard.h"
#include "tests/transforms.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;
using tests::Shortage;

using Bytes = std::vector<uint8_t>;

// What is wrong without memory having run out.
void demand(bool right) {
  if (!right) throw std::logic_error("not what is expected");
}

// Has the allocations of `act` fail, one in each run and then also all that follow, until none is left to
// fail. `act` throws std::bad_alloc or does what it always does. `settle` follows each
// run, with memory.
void fail_each(
    const char* name, const std::function<void()>& act, const std::function<void()>& settle = [] {}) {
  act();  // what is made once for good: tables, lists of kernels
  settle();
  uint64_t runs = 0;
  for (const Shortage shortage : {Shortage::kOnce, Shortage::kForGood}) {
    for (uint64_t number = 1;; ++number, ++runs) {
      const int64_t before = tests::live_allocations();
      std::string wrong;
      bool thrown = false;
      tests::begin_shortage(number, shortage);
      try {
        act();
      } catch (const std::bad_alloc&) {
        thrown = true;
      } catch (const std::exception& error) {
        tests::end_shortage();
        wrong = error.what();
      }
      const uint64_t failed = tests::end_shortage();
      if (wrong.empty() && failed == 0 && thrown) wrong = "std::bad_alloc without a reason";
      if (wrong.empty()) {
        try {
          settle();
          // A deque holds a block more where its last one is full, which is over when more was done.
          for (int i = 0; i < 64 && tests::live_allocations() != before; ++i) settle();
        } catch (const std::exception& error) {
          wrong = std::string("afterwards: ") + error.what();
        }
      }
      const int64_t left = wrong.empty() ? tests::live_allocations() - before : 0;
      if (!wrong.empty() || left != 0) {
        FAIL(std::string(name) << ", allocation " << number << ": " << wrong << "; " << left
                               << " allocations are left");
      }
      if (failed == 0) break;
    }
  }
  CHECK(runs != 0);
}

struct Photos {
  Bytes baseline = tests::jpeg({120, 90}, {}, 3, 1);
  Bytes restarts =
      tests::reference_jpeg(tests::waves({120, 90}, 3, 2), {120, 90}, 3, {.restart_interval = 4});
  Bytes progressive = tests::reference_jpeg(tests::waves({120, 90}, 3, 3), {120, 90}, 3,
                                            {.across = 2, .down = 2, .progressive = true});
  Bytes grey = tests::reference_jpeg(tests::waves({64, 48}, 1, 4), {64, 48}, 1, {});
  Bytes uneven =
      tests::reference_jpeg(tests::waves({120, 90}, 3, 5), {120, 90}, 3, {.across = 4, .scan_by_scan = true});
};

Bytes decoded(const Bytes& jpeg, Rect region) {
  JpegDecoder decoder;
  decoder.open(jpeg);
  return tests::to_rgb(decoder.decode(region));
}

TEST_CASE("without memory: decoding, encoding and transcoding of JPEGs") {
  const Photos photos;
  for (const auto& [name, jpeg] :
       {std::pair("baseline", &photos.baseline), std::pair("restarts", &photos.restarts),
        std::pair("progressive", &photos.progressive), std::pair("grey", &photos.grey),
        std::pair("scan by scan", &photos.uneven)}) {
    const Rect region{8, 5, 50, 40};
    const Bytes expected = decoded(*jpeg, region);
    fail_each(name, [&, &from = *jpeg] { demand(decoded(from, region) == expected); });
    const auto transcoded = transcode_jpeg(*jpeg);
    fail_each("transcode", [&, &from = *jpeg] { demand(transcode_jpeg(from) == transcoded); });
  }
  const Extent size{600, 400};
  const Bytes pixels = tests::waves(size, 3, 6);
  const JpegEncodeSpec spec{.quality = 100, .horizontal_sampling = 1, .vertical_sampling = 1};
  const Bytes expected = encode_jpeg(pixels.data(), size, 3, spec);
  REQUIRE(expected.size() > 2 * (size_t{64} << 10));  // the output grows twice
  fail_each("encode", [&] { demand(encode_jpeg(pixels.data(), size, 3, spec) == expected); });

  ReencodeSpec small;
  small.part = {4, 4, 100, 80};
  small.size = {50, 40};
  const Bytes resized = Reencoder().run(photos.baseline, small);
  fail_each("re-encode", [&] { demand(Reencoder().run(photos.baseline, small) == resized); });

  JpegDecoder kept;
  const auto right = [&](const Bytes& jpeg, const Bytes& pixels) {
    kept.open(jpeg);
    demand(tests::to_rgb(kept.decode({0, 0, 120, 90})) == pixels);
  };
  const Bytes first = decoded(photos.progressive, {0, 0, 120, 90}),
              second = decoded(photos.baseline, {0, 0, 120, 90});
  const auto both = [&] { right(photos.progressive, first), right(photos.baseline, second); };
  fail_each("a decoder that is kept", both, both);
}

TEST_CASE("without memory: PNG and WebP") {
  const auto whole = [](std::span<const uint8_t> file) {
    ImageDecoder decoder;
    const Extent size = decoder.open(file);
    return tests::to_rgb(decoder.decode({0, 0, size.width, size.height}));
  };
  const std::span<const uint8_t> files[] = {tests::kPng, tests::kInterlacedPng, tests::kWebp,
                                            tests::kLosslessWebp, tests::kTransparentWebp};
  for (const auto file : files) {
    if (format_of(file) == ImageFormat::kOther) continue;  // built without its library
    const Bytes expected = whole(file);
    fail_each("decode", [&] { demand(whole(file) == expected); });
    fail_each("check", [&] {
      ImageDecoder decoder;
      decoder.open(file), decoder.check();
    });
  }
}

std::vector<TransformSpec> two_transforms() {
  return {tests::transform("RandomResizedCrop", {32, 24}, {{"hflip", tests::Numbers{0.5}}},
                           {tests::jitter({0.4})}),
          tests::transform("CenterCrop", {20, 20}, {{"filter", "bicubic"}, {"resize", tests::Numbers{24}}})};
}

TEST_CASE("without memory: transforms") {
  const Photos photos;
  const auto transforms = two_transforms();
  Bytes raw = tests::waves({60, 50}, 3, 7);
  for (const StoredImage& image :
       {StoredImage{.bytes = photos.baseline}, StoredImage{.bytes = photos.progressive},
        StoredImage{
            .bytes = raw, .encoding = ImageEncoding::kRaw, .size = {60, 50}, .order = TensorOrder::kChw}}) {
    const auto shown = [&] {
      TransformDecoder decoder;
      Bytes pixels(32 * 24 * 3 + 20 * 20 * 3);
      const RgbSlot slots[] = {{pixels.data(), 32 * 3}, {pixels.data() + 32 * 24 * 3, 20 * 3}};
      decoder.decode(image, transforms, SampleRandom(1, 2, 3), kDefaultMaxPixels, slots);
      return pixels;
    };
    const Bytes expected = shown();
    fail_each("transforms", [&] { demand(shown() == expected); });
  }
  fail_each("TensorFlow's resize", [&] {
    Bytes pixels(30 * 20 * 3);
    resize_tf1(raw.data(), {60, 50}, {30, 20}, true, {pixels.data(), 30 * 3});
  });
  const std::vector<std::span<const uint8_t>> images{photos.baseline, photos.grey};
  const std::vector<uint64_t> indices{0, 1, 1, 0};
  fail_each("decode loop", [&] {
    try {
      run_decode_loop(images, indices, two_transforms()[1], DecodeMode::kExact, PixelMode::kRgb, 1, 2, 2);
    } catch (const Error& error) {  // that there is one thread
      if (error.code() != ErrorCode::kIo) throw;
    }
  });
}

std::string record(size_t i, const Bytes& image) {
  const std::vector<float> low{0.1F, 0.2F}, high{0.5F, 0.9F};
  return write_example({{"image", BytesValues{image}},
                        {"label", Int64Values{static_cast<int64_t>(i)}},
                        {"name", BytesValues{tests::bytes_of("a picture with a name that is not short")}},
                        {"image/object/bbox/xmin", FloatValues{low}},
                        {"image/object/bbox/xmax", FloatValues{high}},
                        {"image/object/bbox/ymin", FloatValues{low}},
                        {"image/object/bbox/ymax", FloatValues{high}}});
}

// A shard of small photographs with boxes and an index.
class PhotoShard {
 public:
  static constexpr uint64_t kRecords = 8;

  PhotoShard() : shard_(payloads()), index_(lines()) {}

  std::shared_ptr<RecordSet> records() const {
    auto set = std::make_shared<RecordSet>();
    set->add_listed({shard_.path(), index_.path(), kRecords, size()});
    demand(set->open_listed(2).empty());
    return set;
  }
  std::shared_ptr<SampleSource> source(std::shared_ptr<RecordSet> records) const {
    RecordKeys keys;
    keys.image = "image";
    keys.label.key = "label";
    keys.source = "name";
    keys.box_prefix = "image/object/bbox/";
    return std::make_shared<RecordSource>(std::move(records), std::move(keys), PayloadCheck::kOn);
  }
  uint64_t size() const { return shard_.extents().back().offset + shard_.extents().back().size; }
  const std::string& path() const { return shard_.path(); }

 private:
  static std::vector<std::string> payloads() {
    std::vector<std::string> records;
    for (size_t i = 0; i < kRecords; ++i) {
      const Extent size{40 + static_cast<int32_t>(i), 30};
      const Bytes pixels = tests::waves(size, 3, static_cast<int>(i));
      records.push_back(record(i, tests::reference_jpeg(pixels, size, 3, {.progressive = i % 2 == 1})));
    }
    return records;
  }
  std::string lines() const {
    std::string text;
    for (const RecordExtent& extent : shard_.extents())
      text += std::to_string(extent.offset) + " " + std::to_string(extent.size) + "\n";
    return text;
  }

  tests::Shard shard_;
  tests::TemporaryFile index_;
};

// All that a source says of all of its samples.
Bytes contents(const SampleSource& source) {
  SourceScratch scratch;
  Bytes all;
  for (uint64_t i = 0; i < source.size(); ++i) {
    const auto bytes = source.fetch(i, scratch);
    std::string name;
    const SourceSample sample = source.describe({i, kWholeImage}, bytes, scratch, name);
    std::vector<LabelledBox> boxes;
    source.append_boxes(i, bytes, sample.label, scratch, boxes);
    all.insert(all.end(), sample.image.bytes.begin(), sample.image.bytes.end());
    all.insert(all.end(), name.begin(), name.end());
    all.push_back(static_cast<uint8_t>(sample.label));
    all.push_back(static_cast<uint8_t>(boxes.size()));
  }
  return all;
}

TEST_CASE("without memory: records, files, caches and mixes of them") {
  const PhotoShard shard;
  const Bytes expected = contents(*shard.source(shard.records()));
  fail_each("records", [&] { demand(contents(*shard.source(shard.records())) == expected); });
  fail_each("scans", [&] {
    const RandomAccessFile file(shard.path());
    demand(scan_and_sum(file).extents.size() == PhotoShard::kRecords);
    const auto records = shard.records();
    std::vector<uint32_t> counts(PhotoShard::kRecords);
    count_values(*records, "image/object/bbox/xmin", 0, 2, nullptr, counts);
    std::vector<int64_t> labels(PhotoShard::kRecords);
    LabelKeys keys;
    keys.key = "label";
    read_labels(*records, keys, 0, 2, nullptr, labels);
    demand(counts.back() == 2 && labels.back() == PhotoShard::kRecords - 1);
  });

  const tests::TemporaryFile first("one file"), second("an archive with two"), third("another archive");
  const auto files = [&] {
    FileList list;
    list.names = first.path() + "a name in the first archive" + "a name in the second archive";
    const auto a = static_cast<int64_t>(first.path().size());
    list.starts = {0, a, a + 27, a + 55};
    list.labels = {1, 2, 3};
    list.sizes = {8, 7, 6};
    list.archives = {second.path(), third.path()};
    list.archive_of = {-1, 0, 1};
    list.offsets = {0, 3, 5};
    auto set = std::make_shared<FileSet>(std::move(list));
    set->set_boxes({0, 1, 1, 2}, {{0.1F, 0.1F, 0.5F, 0.5F}, {0.2F, 0.2F, 0.7F, 0.7F}});
    return set;
  };
  const Bytes of_files = contents(*files());
  fail_each("files", [&] { demand(contents(*files()) == of_files); });
  fail_each("mixes", [&] {
    const Concatenation both({{files(), 10}, {shard.source(shard.records()), 20}});
    demand(contents(both).size() == of_files.size() + expected.size());
  });

  fail_each("memory cache", [&] {
    const auto cache = std::make_shared<MemoryCache>(uint64_t{1} << 20);
    const CachedSource cached(files(), cache);
    for (int epoch = 0; epoch < 2; ++epoch) demand(contents(cached) == of_files);
  });
  const tests::TemporaryFile kept(""), counter(std::string(8, '\0'));
  fail_each("node cache", [&] {
    const auto opened = [](const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); };
    demand(::truncate(kept.path().c_str(), 8 + 7 + 6 + 3 * kFrameBytes) == 0);
    const std::vector<uint64_t> sizes{8, 7, 6};
    const auto cache =
        std::make_shared<NodeCacheFile>(opened(kept.path()), opened(counter.path()), 1 << 20, sizes);
    const CachedSource cached(files(), cache);
    for (int epoch = 0; epoch < 2; ++epoch) demand(contents(cached) == of_files);
    demand(::truncate(kept.path().c_str(), 0) == 0);
  });

  // More files than stay open: the table of those that take turns.
  fail_each("open files", [&] {
    OpenFiles table(1);
    for (const tests::TemporaryFile* file : {&first, &second, &third, &first}) table.add(file->path(), {});
    for (const size_t i : {0, 1, 2, 3, 1, 3}) demand(table.open(i)->size() > 5);
  });
  OpenFiles table(1);
  for (const tests::TemporaryFile* file : {&first, &second, &third}) table.add(file->path(), {});
  for (const size_t i : {0, 1, 2}) table.open(i);
  const auto turns = [&] {
    for (const size_t i : {0, 1, 2}) demand(table.open(i)->size() > 5);
  };
  fail_each("open files that take turns", turns, turns);
}

// One thread that fetches, and goes on for lack of memory, as those of Python do.
class Fetcher {
 public:
  explicit Fetcher(RemoteRanges& ranges, std::string bytes)
      : ranges_(ranges), bytes_(std::move(bytes)), thread_([this] { run(); }) {}
  ~Fetcher() { thread_.join(); }

 private:
  void run() {
    while (!ranges_.closed()) {
      const auto job = ranges_.next(5ms);
      if (!job) continue;
      try {
        const auto bytes = std::make_shared<std::string>(bytes_, job->span.offset, job->span.length);
        ranges_.deliver(job->id, tests::bytes_of(*bytes), bytes);
      } catch (const std::bad_alloc&) {
        ranges_.fail(job->id, std::nullopt);
      }
    }
  }

  RemoteRanges& ranges_;
  std::string bytes_;
  std::thread thread_;
};

TEST_CASE("without memory: remote ranges") {
  const std::string all(4000, 'x');
  const auto expected = [] {
    return std::vector<ExpectedRange>{{{1, 0, 1000}, 1, {{0, 400, 1}, {400, 600, 1}}},
                                      {{1, 1000, 1000}, 2, {{1000, 1000, 1}}},
                                      {{1, 2000, 500}, 3, {{2000, 500, 2}}}};
  };
  const RemoteSpan spans[] = {{1, 0, 400}, {1, 400, 600}, {1, 1000, 1000}, {1, 2000, 500}, {1, 3000, 10}};
  const auto take_all = [&](RemoteRanges& ranges) {
    for (const RemoteSpan& span : spans) demand(ranges.take(span).bytes.size() == span.length);
  };
  fail_each("remote ranges", [&] {
    RemoteRanges ranges(5000);
    ranges.expect(expected(), 4);
    // Without a thread, so that it is certain which allocation is whose.
    while (const auto job = ranges.next(0ms)) {
      const auto bytes = std::make_shared<std::string>(all, job->span.offset, job->span.length);
      ranges.deliver(job->id, tests::bytes_of(*bytes), bytes);
    }
    ranges.release_until(5);
  });
  // The same ranges all the time, with a thread: after each failure all is forgotten, and then works.
  RemoteRanges ranges(5000);
  {
    const Fetcher fetcher(ranges, all);
    const auto with_memory = [&] {
      ranges.forget();
      demand(ranges.counts().held_bytes <= 4000);
      ranges.expect(expected(), 4);
      take_all(ranges);
      ranges.release_until(5);
      ranges.forget();
      while (ranges.counts().held_bytes != 0) std::this_thread::sleep_for(1ms);
    };
    fail_each(
        "remote ranges with a thread",
        [&] {
          ranges.expect(expected(), 4);
          take_all(ranges);
        },
        with_memory);
    ranges.close();
  }
  CHECK(ranges.counts().held_bytes == 0);
}

TEST_CASE("without memory: threads and buffers") {
  fail_each("pool of threads", [] {
    std::atomic<int> done{0};
    ThreadPool pool(3);
    pool.submit(5, [&](size_t, size_t) { ++done; });
    pool.submit(5, [&](size_t, size_t) { ++done; });
    while (done < 10) std::this_thread::yield();
  });
  fail_each("shared work", [] {
    std::atomic<size_t> calls{0};
    demand(share_work(4, [&] {
             ++calls;
             const Bytes own(100);
           }) == calls);
  });
  fail_each("buffers", [] {
    const auto pool = std::make_shared<BufferPool>(1000, 2);
    std::vector<std::shared_ptr<uint8_t[]>> taken;
    for (int i = 0; i < 4; ++i) taken.push_back(pool->take());
    taken.clear();
    taken.push_back(pool->take());
  });
  TraceLog log(1);
  log.start(100);
  fail_each("traces", [&] {
    for (int i = 0; i < 10; ++i) log.add({});
    log.take();
  });
}

#if defined(STOKER_SANITIZE_THREAD)  // which looks for races, not for memory
constexpr uint64_t kStep = tests::kThinned;
#else
constexpr uint64_t kStep = 1;
#endif

// How an engine may be used.
enum class Use { kPlain, kFloats, kBoxes, kDecodedCache, kConverter, kRaw };

EngineSpec engine_spec(Use use) {
  EngineSpec spec;
  spec.transforms =
      use == Use::kRaw ? std::vector{tests::transform("RawTensor", {20, 10})} : two_transforms();
  spec.batch_size = 4;
  spec.threads = 2;
  spec.spare_buffers = 1;
  if (use == Use::kFloats) spec.format = {.type = PixelType::kFloat16, .layout = PixelLayout::kNchw};
  spec.boxes.wanted = use == Use::kBoxes;
  if (use == Use::kDecodedCache) spec.decoded = std::make_shared<MemoryCache>(uint64_t{1} << 20);
  if (use == Use::kConverter)
    spec.convert = [](auto) { return ConvertedImage{tests::waves({24, 20}, 3, 0), {24, 20}}; };
  return spec;
}

Bytes pixels_of(const Batch& batch, const EngineSpec& spec) {
  Bytes all;
  for (size_t i = 0; i < spec.transforms.size(); ++i) {
    const Extent out = spec.transforms[i].out();
    const size_t bytes = batch.indices.size() * static_cast<size_t>(out.width) *
                         static_cast<size_t>(out.height) * kRgbBytes * spec.format.value_bytes();
    all.insert(all.end(), batch.images[i].get(), batch.images[i].get() + bytes);
  }
  for (const int64_t label : batch.labels) all.push_back(static_cast<uint8_t>(label));
  return all;
}

// Two batches; throws what failed first.
Bytes batches_of(BatchEngine& engine) {
  for (const uint64_t first : {0, 4}) {
    BatchRequest request;
    for (uint64_t i = 0; i < 4; ++i) request.samples.push_back({{first + i, kWholeImage}, first + i, i});
    engine.submit(request);
  }
  Bytes all;
  std::exception_ptr failed;
  for (int i = 0; i < 2; ++i) {
    std::optional<Batch> batch;
    while (!batch) batch = engine.next(100ms);
    if (!batch->failures.empty()) {
      failed = batch->failures.front().error;
      continue;
    }
    const Bytes pixels = pixels_of(*batch, engine.spec());
    all.insert(all.end(), pixels.begin(), pixels.end());
  }
  if (failed) std::rethrow_exception(failed);
  return all;
}

TEST_CASE("without memory: the engine") {
  const PhotoShard photos;
  std::vector<std::string> tensors, odd;
  for (size_t i = 0; i < PhotoShard::kRecords; ++i) {
    tensors.push_back(write_example({{"image", BytesValues{tests::waves({20, 10}, 3, static_cast<int>(i))}},
                                     {"label", Int64Values{static_cast<int64_t>(i)}},
                                     {"height", Int64Values{10}},
                                     {"width", Int64Values{20}}}));
    odd.push_back(record(i, {'P', 'N', 'G'}));
  }
  const tests::Shard raw(tensors), others(odd);
  RecordKeys raw_keys;
  raw_keys.image = "image";
  raw_keys.label.key = "label";
  raw_keys.encoding = ImageEncoding::kRaw;
  raw_keys.height = "height";
  raw_keys.width = "width";
  const auto source = [&](Use use) -> std::shared_ptr<const SampleSource> {
    if (use == Use::kRaw) return std::make_shared<RecordSource>(raw.records(), raw_keys, PayloadCheck::kOn);
    if (use == Use::kConverter) return photos.source(others.records());
    return photos.source(photos.records());
  };
  for (const auto& [name, use] :
       {std::pair("plain", Use::kPlain), std::pair("floats", Use::kFloats), std::pair("boxes", Use::kBoxes),
        std::pair("decoded cache", Use::kDecodedCache), std::pair("converter", Use::kConverter),
        std::pair("raw", Use::kRaw)}) {
    const auto whole = [&, use = use] {
      BatchEngine engine(source(use), engine_spec(use));
      return batches_of(engine);
    };
    const Bytes expected = whole();
    // Made, used and closed; where memory ends may be any of these.
    fail_each(name, [&] { demand(whole() == expected); });

    // One engine all the time.
    const int64_t before = tests::live_allocations();
    {
      BatchEngine engine(source(use), engine_spec(use));
      engine.trace().start(1 << 20);
      const auto settle = [&] {
        engine.drop_pending();
        for (int i = 0; i < 2; ++i) demand(batches_of(engine) == expected);
        engine.trace().take();
      };
      for (int i = 0; i < 20; ++i) settle();  // until each thread has had each image
      uint64_t runs = 0;
      for (const Shortage shortage : {Shortage::kOnce, Shortage::kForGood}) {
        for (uint64_t number = 1;; number += kStep, ++runs) {
          tests::begin_shortage(number, shortage);
          std::exception_ptr error;
          try {
            demand(batches_of(engine) == expected);
          } catch (...) {
            error = std::current_exception();
          }
          const uint64_t failed = tests::end_shortage();
          if (error) CHECK_THROWS_AS(std::rethrow_exception(error), std::bad_alloc);
          settle();
          if (failed == 0) break;
        }
      }
      CHECK(runs != 0);
    }
    CHECK(tests::live_allocations() == before);
  }
}

TEST_CASE("all samples without memory share one exception") {
  const PhotoShard photos;
  EngineSpec spec = engine_spec(Use::kPlain);
  spec.transforms = {tests::transform("Resize", {1 << 16, 1 << 16})};
  spec.batch_size = 100;  // 1.3 TB, which no system gives
  BatchEngine engine(photos.source(photos.records()), std::move(spec));
  BatchRequest request;
  for (uint64_t i = 0; i < PhotoShard::kRecords; ++i) request.samples.push_back({{i, kWholeImage}, i, i});
  engine.submit(request);
  std::optional<Batch> batch;
  while (!batch) batch = engine.next(100ms);
  REQUIRE(batch->failures.size() == PhotoShard::kRecords);
  for (const SampleFailure& failure : batch->failures) CHECK(failure.error == batch->failures.front().error);
  CHECK_THROWS_AS(std::rethrow_exception(batch->failures.front().error), std::bad_alloc);
}

}  // namespace
}  // namespace stoker
