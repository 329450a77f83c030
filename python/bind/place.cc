// include/packtrain/place.h: what a path lies on, and what this process was granted.
#include "packtrain/place.h"

#include "gil.h"
#include "report.h"

namespace packtrain::bind {

void bind_place(nb::module_& module) {
  ReportClass<Place>(module, "Place", "What a path lies on.")
      .property(
          "kind", [](const Place& place) { return to_text(place_kind_name(place.kind)); },
          "'memory', 'local', 'network', 'fuse' or 'unknown'.")
      .field("filesystem", &Place::filesystem, "'ext4', 'lustre', 'nfs4', 'tmpfs', ...")
      .field("mount", &Place::mount, "Where it is mounted.")
      .field("bytes_total", &Place::bytes_total, "How much it holds.")
      .field("bytes_free", &Place::bytes_free, "How much of it this user may still write.")
      .field("inodes_total", &Place::inodes_total, "How many files it holds; 0 where they are not counted.")
      .field("inodes_free", &Place::inodes_free, "How many files this user may still create.")
      .field("read_only", &Place::read_only, "Whether nothing can be written there.");
  ReportClass<Grant>(module, "Grant", "What this process was granted, by affinity and cgroups.")
      .field("cores", &Grant::cores, "Cores this process may use.")
      .field("machine_cores", &Grant::machine_cores, "Cores of the machine.")
      .field("memory", &Grant::memory, "Bytes of memory this process may use.")
      .field("memory_available", &Grant::memory_available, "How many of them are left now.")
      .field("memory_most", &Grant::memory_most,
             "How many could be had now, if all of the page cache made way.")
      .field("cores_from", &Grant::cores_from, "What limits the cores.")
      .field("memory_from", &Grant::memory_from, "What limits the memory.");
  module.def(
      "place_of",
      [](const Path& path) {
        return value_or_raise([&] {
          const WithoutGil free;
          return place_of(path.name);
        }());
      },
      nb::arg("path"), "What the nearest existing folder at or above `path` lies on.");
  module.def("granted", &granted, nb::call_guard<WithoutGil>(), "What this process was granted.");
}

}  // namespace packtrain::bind
