// Binds core/engine/engine_totals.h and core/clocks/trace_log.h.
#include "core/engine/engine_totals.h"

#include <nanobind/stl/optional.h>

#include "bind/engine.h"
#include "core/clocks/trace_log.h"

namespace stoker::bind {
namespace {

// What of the loader's figures is the engine's, under the names that feed/stats.py reads.
nb::dict totals(Engine& engine) {
  const EngineTotals all = engine.get().totals();
  nb::dict made, stages;
  for (size_t i = 0; i < kStages; ++i) {
    stages[kStageNames[i]] = nb::make_tuple(all.stages.of[i].samples, all.stages.of[i].nanoseconds);
  }
  made["stages"] = stages;
  made["bytes_read"] = all.stages.bytes_read;
  made["threads"] = all.threads;
  made["busy_ns"] = all.workers.busy_ns;
  made["idle_ns"] = all.workers.idle_ns;
  made["cpu_ns"] = all.workers.cpu_ns;
  made["batches"] = all.consumer.batches;
  made["samples"] = all.consumer.samples;
  made["ready"] = all.consumer.ready;
  made["wait_ns"] = all.consumer.wait_ns;
  made["handover_ns"] = all.consumer.handover_ns;
  made["consume_ns"] = all.consumer.consume_ns;
  return made;
}

nb::tuple take_trace(Engine& engine) {
  const TraceLog::Taken taken = engine.get().trace().take();
  const size_t bytes = taken.events.size() * sizeof(TraceEvent);
  return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(taken.events.data()), bytes), taken.lost);
}

}  // namespace

void add_totals(nb::class_<Engine>& engine) {
  engine
      .def("totals", &totals, nb::sig("def totals(self) -> dict[str, typing.Any]"),
           "What was done since it was made; also after close().")
      .def(
          "time_stages", [](Engine& engine, bool on) { engine.get().time_stages(on); }, nb::arg("on"),
          "Whether samples are timed, from now on; switched off only to see what that costs.")
      .def(
          "start_trace", [](Engine& engine, size_t most) { engine.get().trace().start(most); },
          nb::arg("most"), "Keep what the threads do, up to `most` events of each until they are taken.")
      .def(
          "stop_trace", [](Engine& engine) { engine.get().trace().stop(); }, "Keep nothing any more.")
      .def(
          "is_traced", [](Engine& engine) { return engine.get().trace().on(); }, "Whether events are kept.")
      .def("take_trace", &take_trace, nb::sig("def take_trace(self) -> tuple[bytes, int]"),
           "The events since the last call, as feed/trace.py lays them out, and how many were lost.");
}

}  // namespace stoker::bind
