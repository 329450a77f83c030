// Names, folders and the conveniences, for the real filesystem and for the one in memory.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "io/posix_paths.h"
#include "io/test_storage.h"

namespace packtrain {
namespace {

class NamesTest : public testing::TestWithParam<bool> {
 protected:
  bool in_memory() const { return GetParam(); }
  std::string path(std::string_view name) const { return in_memory() ? std::string(name) : folder_ / name; }
  Storage& storage() { return in_memory() ? static_cast<Storage&>(memory_) : posix_storage(); }
  std::map<std::string, FileKind> listed(std::string_view name) {
    std::map<std::string, FileKind> found;
    EXPECT_TRUE(storage()
                    .list(path(name),
                          [&](FolderEntry&& entry) {
                            found[entry.name] = entry.kind;
                            return true;
                          })
                    .ok());
    return found;
  }

  TemporaryFolder folder_;
  MemoryStorage memory_;
};

TEST_P(NamesTest, StatTellsKindSizeAndTime) {
  put(storage(), path("a"), "12345");
  ASSERT_TRUE(storage().make_folder(path("d")).ok());
  auto file = storage().stat(path("a"));
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file->kind, FileKind::file);
  EXPECT_EQ(file->size, 5u);
  EXPECT_GT(file->mtime_ns, 0);
  EXPECT_EQ(storage().stat(path("d"))->kind, FileKind::folder);
  EXPECT_EQ(storage().stat(path("none")).status().code(), Code::not_found);
  auto opened = storage().open(path("a"));
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->info().inode, file->inode);
  EXPECT_EQ((*opened)->info().mtime_ns, file->mtime_ns);
}

TEST_P(NamesTest, ListGivesNamesWithKindsAndStopsWhenTold) {
  put(storage(), path("d/one"), "1");
  put(storage(), path("d/two"), "2");
  ASSERT_TRUE(storage().make_folder(path("d/deeper/still")).ok());
  const std::map<std::string, FileKind> expected = {
      {"one", FileKind::file}, {"two", FileKind::file}, {"deeper", FileKind::folder}};
  EXPECT_EQ(listed("d"), expected);
  size_t calls = 0;
  EXPECT_TRUE(storage().list(path("d"), [&](FolderEntry&&) { return ++calls < 2; }).ok());
  EXPECT_EQ(calls, 2u);
  EXPECT_EQ(storage().list(path("none"), [](FolderEntry&&) { return true; }).code(), Code::not_found);
  EXPECT_EQ(storage().list(path("d/one"), [](FolderEntry&&) { return true; }).code(), Code::not_found);
}

TEST_P(NamesTest, MakeFolderMakesParentsAndMayBeRepeated) {
  EXPECT_TRUE(storage().make_folder(path("a/b/c")).ok());
  EXPECT_TRUE(storage().make_folder(path("a/b/c")).ok());
  EXPECT_TRUE(storage().make_folder(path("a/b/c/")).ok());
  EXPECT_EQ(storage().stat(path("a/b/c"))->kind, FileKind::folder);
  put(storage(), path("file"), "x");
  EXPECT_EQ(storage().make_folder(path("file")).code(), Code::invalid);
}

TEST_P(NamesTest, RenameReplacesFilesAndEmptyFoldersOnly) {
  put(storage(), path("a"), "a");
  put(storage(), path("b"), "b");
  EXPECT_TRUE(storage().rename(path("a"), path("b")).ok());
  EXPECT_EQ(get(storage(), path("b")), "a");
  EXPECT_EQ(storage().stat(path("a")).status().code(), Code::not_found);

  put(storage(), path("full/x"), "x");
  put(storage(), path("other/y"), "y");
  ASSERT_TRUE(storage().make_folder(path("empty")).ok());
  EXPECT_EQ(storage().rename(path("other"), path("full")).code(), Code::invalid);
  EXPECT_EQ(get(storage(), path("full/x")), "x");
  EXPECT_TRUE(storage().rename(path("other"), path("empty")).ok());
  EXPECT_EQ(get(storage(), path("empty/y")), "y");
  EXPECT_EQ(storage().rename(path("none"), path("c")).code(), Code::not_found);
  EXPECT_EQ(storage().rename(path("full"), path("full/inside")).code(),
            in_memory() ? Code::invalid : Code::io);
}

TEST_P(NamesTest, LinkNeverReplaces) {
  put(storage(), path("a"), "a");
  put(storage(), path("b"), "b");
  EXPECT_EQ(storage().link(path("a"), path("b")).code(), Code::invalid);
  EXPECT_EQ(get(storage(), path("b")), "b");
  EXPECT_TRUE(storage().link(path("a"), path("c")).ok());
  EXPECT_TRUE(storage().remove(path("a")).ok());
  EXPECT_EQ(get(storage(), path("c")), "a");
  EXPECT_EQ(storage().link(path("none"), path("d")).code(), Code::not_found);
}

TEST_P(NamesTest, RemoveTakesFilesAndEmptyFolders) {
  put(storage(), path("d/a"), "a");
  EXPECT_EQ(storage().remove(path("d")).code(), Code::invalid);
  EXPECT_TRUE(storage().remove(path("d/a")).ok());
  EXPECT_TRUE(storage().remove(path("d")).ok());
  EXPECT_EQ(storage().remove(path("d")).code(), Code::not_found);
}

TEST_P(NamesTest, SyncFolderNeedsAFolder) {
  ASSERT_TRUE(storage().make_folder(path("d")).ok());
  EXPECT_TRUE(storage().sync_folder(path("d")).ok());
  EXPECT_EQ(storage().sync_folder(path("none")).code(), Code::not_found);
}

TEST_P(NamesTest, ReadWholeKeepsToItsLimit) {
  put(storage(), path("a"), "12345");
  EXPECT_EQ(*read_whole(storage(), path("a"), 5), "12345");
  EXPECT_EQ(read_whole(storage(), path("a"), 4).status().code(), Code::invalid);
  EXPECT_EQ(read_whole(storage(), path("b")).status().code(), Code::not_found);
}

TEST_P(NamesTest, RemoveTreeTakesAllBelowAndNothingBeside) {
  put(storage(), path("t/a"), "a");
  put(storage(), path("t/b/c/d"), "d");
  ASSERT_TRUE(storage().make_folder(path("t/e")).ok());
  put(storage(), path("t2/kept"), "k");
  EXPECT_TRUE(remove_tree(storage(), path("t")).ok());
  EXPECT_EQ(storage().stat(path("t")).status().code(), Code::not_found);
  EXPECT_EQ(get(storage(), path("t2/kept")), "k");
  EXPECT_EQ(remove_tree(storage(), path("t")).code(), Code::not_found);
  EXPECT_TRUE(remove_tree(storage(), path("t2/kept")).ok());
}

INSTANTIATE_TEST_SUITE_P(Storages, NamesTest, testing::Values(false, true),
                         [](const auto& made) { return std::string(made.param ? "memory" : "posix"); });

TEST(SymlinkTest, IsListedReadAndNeverFollowedByRemoveTree) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  put(storage, folder / "kept/a", "a");
  ASSERT_TRUE(storage.make_folder(folder / "t").ok());
  ASSERT_EQ(::symlink("../kept", (folder / "t/link").c_str()), 0);
  EXPECT_EQ(storage.stat(folder / "t/link", false)->kind, FileKind::symlink);
  EXPECT_EQ(storage.stat(folder / "t/link")->kind, FileKind::folder);
  EXPECT_EQ(*storage.read_link(folder / "t/link"), "../kept");
  EXPECT_EQ(storage.read_link(folder / "kept/a").status().code(), Code::invalid);
  EXPECT_TRUE(storage
                  .list(folder / "t",
                        [](FolderEntry&& entry) {
                          EXPECT_EQ(entry.kind, FileKind::symlink);
                          return true;
                        })
                  .ok());
  EXPECT_TRUE(remove_tree(storage, folder / "t").ok());
  EXPECT_EQ(get(storage, folder / "kept/a"), "a");
  const std::string long_target(1000, 'x');
  ASSERT_EQ(::symlink(long_target.c_str(), (folder / "long").c_str()), 0);
  EXPECT_EQ(*storage.read_link(folder / "long"), long_target);
}

TEST(NamesWithOddBytesTest, GoThroughUnchanged) {
  TemporaryFolder folder;
  const std::string name = "spaces and\nlines \xff\xfe";
  put(posix_storage(), folder / name, "odd");
  EXPECT_EQ(visible(posix_storage(), folder.path()), std::vector<std::string>{name});
  EXPECT_EQ(get(posix_storage(), folder / name), "odd");
}

TEST(FolderOfTest, NamesTheFolderAFileIsIn) {
  EXPECT_EQ(folder_of("a/b"), "a");
  EXPECT_EQ(folder_of("b"), ".");
  EXPECT_EQ(folder_of("/b"), "/");
  EXPECT_EQ(folder_of("/a/b/"), "/a");
  EXPECT_EQ(folder_of("/"), "/");
}

}  // namespace
}  // namespace packtrain
