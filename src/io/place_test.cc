#include "packtrain/place.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "io/grant.h"
#include "io/mounts.h"
#include "io/test_storage.h"

namespace packtrain {
namespace {

constexpr std::string_view kMounts =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "garbage\n"
    "30 27 0:40 / /home rw - nfs4 server:/home rw,vers=4.2\n"
    "31 27 0:41 / /p/scratch rw,relatime shared:5 master:7 - lustre mds@tcp:/scratch rw\n"
    "32 27 0:42 / /mnt/my\\040disk rw - fuse.sshfs me@host: rw\n"
    "33 27 0:43 / /data rw - xfs /dev/sdb rw\n"
    "34 27 0:44 / /data rw - wekafs default/data rw\n";

TEST(MountTest, LongestPointWins) {
  EXPECT_EQ(find_mount(kMounts, "/usr/lib")->type, "ext4");
  EXPECT_EQ(find_mount(kMounts, "/")->point, "/");
  EXPECT_EQ(find_mount(kMounts, "/home/me/data")->type, "nfs4");
  EXPECT_EQ(find_mount(kMounts, "/home")->point, "/home");
  EXPECT_EQ(find_mount(kMounts, "/homework")->type, "ext4");  // a longer name is another folder
  EXPECT_EQ(find_mount(kMounts, "/p/scratch/x")->type, "lustre");
}

TEST(MountTest, EscapedPointsAndSubtypesAreRead) {
  EXPECT_EQ(find_mount(kMounts, "/mnt/my disk/a")->point, "/mnt/my disk");
  EXPECT_EQ(find_mount(kMounts, "/mnt/my disk/a")->type, "fuse.sshfs");
}

TEST(MountTest, LaterMountHidesTheEarlier) { EXPECT_EQ(find_mount(kMounts, "/data/a")->type, "wekafs"); }

TEST(MountTest, NothingFitsInNothing) {
  EXPECT_FALSE(find_mount("", "/a").has_value());
  EXPECT_FALSE(find_mount("1 2 3\n\n - \n4 5 6:7 / / rw -\n", "/a").has_value());
}

TEST(FilesystemTest, KindFollowsTheNumberThenTheName) {
  EXPECT_EQ(filesystem_kind(0xEF53, "ext3"), PlaceKind::local);
  EXPECT_EQ(filesystem_kind(0x794C7630, "overlay"), PlaceKind::local);
  EXPECT_EQ(filesystem_kind(0x01021994, "tmpfs"), PlaceKind::memory);
  EXPECT_EQ(filesystem_kind(0x0BD00BD0, "lustre"), PlaceKind::network);
  EXPECT_EQ(filesystem_kind(0x47504653, "gpfs"), PlaceKind::network);
  EXPECT_EQ(filesystem_kind(0x6969, "nfs4"), PlaceKind::network);
  EXPECT_EQ(filesystem_kind(0xFE534D42, "cifs"), PlaceKind::network);
  EXPECT_EQ(filesystem_kind(0x65735546, "fuse.sshfs"), PlaceKind::fuse);
  EXPECT_EQ(filesystem_kind(0x12345678, "wekafs"), PlaceKind::network);
  EXPECT_EQ(filesystem_kind(0x12345678, "fuse.new"), PlaceKind::fuse);
  EXPECT_EQ(filesystem_kind(0x12345678, "newfs"), PlaceKind::unknown);
  Place unknown;
  EXPECT_TRUE(unknown.far());  // what is not known is treated with the care that a network needs
}

TEST(PlaceTest, TellsRoomOfTheNearestExistingFolder) {
  TemporaryFolder folder;
  auto here = place_of(folder.path());
  ASSERT_TRUE(here.ok()) << here.status().text();
  EXPECT_FALSE(here->filesystem.empty());
  EXPECT_EQ(here->mount.front(), '/');
  EXPECT_GT(here->bytes_total, 0u);
  EXPECT_LE(here->bytes_free, here->bytes_total);
  EXPECT_FALSE(here->read_only);
  auto later = place_of(folder / "not/yet/there");
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->mount, here->mount);
  EXPECT_TRUE(place_of("").ok());
  EXPECT_TRUE(place_of("no-such-name-here").ok());
}

TEST(PlaceTest, MemoryIsToldFromDisk) {
  if (::access("/dev/shm", F_OK) != 0) GTEST_SKIP() << "there is no /dev/shm";
  EXPECT_EQ(place_of("/dev/shm")->kind, PlaceKind::memory);
  EXPECT_EQ(place_of("/dev/shm")->mount, "/dev/shm");
}

// Made-up /proc and /sys/fs/cgroup.
class GrantTest : public testing::Test {
 protected:
  GrantTest() {
    sources_.proc = folder_ / "proc";
    sources_.cgroup = folder_ / "cgroup";
    sources_.affinity = 64;
    sources_.machine_cores = 64;
    proc("meminfo", "MemTotal:       1000000 kB\nMemFree: 5 kB\nMemAvailable:    800000 kB\n");
  }
  void proc(std::string_view name, std::string_view text) {
    put(posix_storage(), sources_.proc + "/" + std::string(name), text);
  }
  void group(std::string_view name, std::string_view text) {
    put(posix_storage(), sources_.cgroup + "/" + std::string(name), text);
  }
  Grant grant() { return granted_from(sources_); }

  TemporaryFolder folder_;
  GrantSources sources_;
};

constexpr uint64_t kMachine = uint64_t{1'000'000} * 1024;

TEST_F(GrantTest, WithoutLimitsItIsTheMachine) {
  const Grant all = grant();
  EXPECT_EQ(all.cores, 64u);
  EXPECT_EQ(all.cores_from, "the machine");
  EXPECT_EQ(all.memory, kMachine);
  EXPECT_EQ(all.memory_available, uint64_t{800'000} * 1024);
  EXPECT_EQ(all.memory_most, all.memory_available);
  EXPECT_EQ(all.memory_from, "the machine");
}

TEST_F(GrantTest, AffinityLimits) {
  sources_.affinity = 6;
  EXPECT_EQ(grant().cores, 6u);
  EXPECT_EQ(grant().machine_cores, 64u);
  EXPECT_EQ(grant().cores_from, "affinity");
}

TEST_F(GrantTest, LeastOfAllAncestorsCountsInVersion2) {
  proc("self/cgroup", "0::/slurm/job_7/step_0\n");
  group("cgroup.controllers", "cpu memory\n");
  group("slurm/cpu.max", "3200000 100000\n");
  group("slurm/job_7/cpu.max", "250000 100000\n");
  group("slurm/job_7/step_0/cpu.max", "max 100000\n");
  group("slurm/memory.max", "max\n");
  group("slurm/job_7/memory.max", "500000000\n");
  group("slurm/job_7/memory.current", "300000000\n");
  group("slurm/job_7/memory.stat",
        "anon 1\ninactive_file 100000000\nactive_file 50000000\nslab_reclaimable 7\n");
  group("slurm/job_7/step_0/memory.max", "600000000\n");
  const Grant job = grant();
  EXPECT_EQ(job.cores, 3u);  // two and a half
  EXPECT_EQ(job.cores_from, "cgroup cpu.max of /slurm/job_7");
  EXPECT_EQ(job.memory, 500'000'000u);
  EXPECT_EQ(job.memory_available, 300'000'000u);
  EXPECT_EQ(job.memory_most, 350'000'007u);
  EXPECT_EQ(job.memory_from, "cgroup memory.max of /slurm/job_7");
}

TEST_F(GrantTest, LeastOfAllAncestorsCountsInVersion1) {
  proc("self/cgroup", "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/\nnonsense\n");
  group("cpu,cpuacct/docker/cpu.cfs_quota_us", "400000\n");
  group("cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  group("cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
  group("cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  group("memory/memory.limit_in_bytes", "9223372036854771712\n");
  group("memory/docker/abc/memory.limit_in_bytes", "200000000\n");
  group("memory/docker/abc/memory.usage_in_bytes", "250000000\n");
  const Grant container = grant();
  EXPECT_EQ(container.cores, 4u);
  EXPECT_EQ(container.cores_from, "cgroup cpu.cfs_quota_us of /docker");
  EXPECT_EQ(container.memory, 200'000'000u);
  EXPECT_EQ(container.memory_available, 0u);
  EXPECT_EQ(container.memory_most, 0u);
  EXPECT_EQ(container.memory_from, "cgroup memory.limit_in_bytes of /docker/abc");
}

TEST_F(GrantTest, PathOutsideTheContainerFallsBackToItsRoot) {
  proc("self/cgroup", "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n");
  group("cpu/cpu.cfs_quota_us", "150000\n");  // mounted by one controller's name
  group("cpu/cpu.cfs_period_us", "100000\n");
  group("memory/memory.limit_in_bytes", "300000000\n");
  EXPECT_EQ(grant().cores, 2u);
  EXPECT_EQ(grant().memory, 300'000'000u);
}

TEST_F(GrantTest, MixedVersionsAreBothAsked) {
  proc("self/cgroup", "4:memory:/m\n0::/u\n");
  group("unified/u/cpu.max", "100000 100000\n");
  group("memory/m/memory.limit_in_bytes", "100000000\n");
  EXPECT_EQ(grant().cores, 1u);
  EXPECT_EQ(grant().memory, 100'000'000u);
}

TEST_F(GrantTest, PartOfACoreIsOneCore) {
  proc("self/cgroup", "0::/\n");
  group("cgroup.controllers", "cpu\n");
  group("cpu.max", "1000 100000\n");
  EXPECT_EQ(grant().cores, 1u);
  EXPECT_EQ(grant().cores_from, "cgroup cpu.max of /");
}

TEST_F(GrantTest, QuotaAboveTheAffinityDoesNotCount) {
  sources_.affinity = 2;
  proc("self/cgroup", "0::/\n");
  group("cgroup.controllers", "cpu\n");
  group("cpu.max", "199000 100000\n");  // rounds up to what affinity gives
  EXPECT_EQ(grant().cores, 2u);
  EXPECT_EQ(grant().cores_from, "affinity");
}

TEST_F(GrantTest, GarbageDoesNotLimit) {
  proc("self/cgroup", "\n::\n0:\n0::relative\n0::/a\n3:cpu:/b\n5:memory\n");
  proc("meminfo", "MemTotal: lots\nMemAvailable:\n");
  group("cgroup.controllers", "");
  for (const char* text : {"", "\n", "max", "abc def", "-5 100000", "100000 0", "0 100000", "1 2 3",
                           "99999999999999999999999 1"}) {
    group("a/cpu.max", text);
    group("cpu/b/cpu.cfs_quota_us", text);
    group("a/memory.max", text[0] == '0' ? "x" : text);
    EXPECT_EQ(grant().cores, 64u) << text;
    EXPECT_EQ(grant().memory, 0u) << text;
  }
}

TEST(GrantedTest, ThisMachineGrantsSomething) {
  const Grant here = granted();
  EXPECT_GE(here.cores, 1u);
  EXPECT_LE(here.cores, here.machine_cores);
  EXPECT_GT(here.memory, 0u);
  EXPECT_LE(here.memory_available, here.memory);
  EXPECT_EQ(affinity_cores() > 0, true);
}

}  // namespace
}  // namespace packtrain
