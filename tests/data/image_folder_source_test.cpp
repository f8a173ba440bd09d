#include "pumice/data/image_folder_source.h"

#include <gtest/gtest.h>

#include "data/made_files.h"
#include "pumice/data/tiny_imagenet_source.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

TEST(ImageFolderSource, TakesClassesFromFoldersAndIdsFromPaths) {
  const TemporaryFolder folder;
  write_square(folder / "dog/b.png", 1, 2, 3);
  write_square(folder / "cat/a.PNG", 40, 50, 60, 20);
  write_jpeg(folder / "cat/z.JPEG", coloured_square(90, 90, 90));
  write_jpeg(folder / "dog/c.jpg", coloured_square(9, 9, 9));
  write_bytes(folder / "cat/notes.txt", "ignored");
  write_square(folder / "cat/.hidden.png", 0, 0, 0);
  write_square(folder / ".git/x.png", 0, 0, 0);
  const auto source = open_image_folder(folder.path(), {});
  EXPECT_EQ(source->classes().names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(source->classes().original_labels, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(source->listing(Part::train).ids,
            (std::vector<std::string>{"cat/a.PNG", "cat/z.JPEG", "dog/b.png", "dog/c.jpg"}));
  EXPECT_EQ(source->listing(Part::test).size(), 0);
  const at::Tensor images = source->images(Part::train, {2, 0});
  EXPECT_EQ(images.sizes(), (at::IntArrayRef{2, 3, 32, 32}));
  EXPECT_TRUE(at::equal(images[1], coloured_square(40, 50, 60, 32)));
  EXPECT_TRUE(at::equal(images[0], coloured_square(1, 2, 3, 32)));
}

TEST(ImageFolderSource, NumbersAsNamesAreLabels) {
  const TemporaryFolder folder;
  for (const char* name : {"10", "9", "2"})
    write_square(folder / (std::string(name) + "/a.png"), 1, 2, 3);
  const auto source = open_image_folder(folder.path(), {.image_size = 8, .channels = 1});
  EXPECT_EQ(source->classes().names, (std::vector<std::string>{"2", "9", "10"}));
  EXPECT_EQ(source->classes().original_labels, (std::vector<std::int64_t>{2, 9, 10}));
  EXPECT_EQ(source->images(Part::train, {0}).sizes(), (at::IntArrayRef{1, 1, 8, 8}));
  const Listing& listing = source->listing(Part::train);
  for (std::size_t i = 0; i < listing.ids.size(); ++i) {
    const auto label = static_cast<std::size_t>(listing.labels[i]);
    EXPECT_EQ(listing.ids[i], source->classes().names[label] + "/a.png");
  }
}

TEST(ImageFolderSource, TrainAndTestFoldersAreTheParts) {
  for (const std::string test : {"test", "val"}) {
    const TemporaryFolder folder;
    write_square(folder / "train/a/1.png", 1, 1, 1);
    write_square(folder / "train/b/1.png", 1, 1, 1);
    write_square(folder / (test + "/b/1.png"), 1, 1, 1);
    const auto source = open_image_folder(folder.path(), {});
    EXPECT_EQ(source->listing(Part::test).ids, (std::vector<std::string>{test + "/b/1.png"}));
    EXPECT_EQ(source->listing(Part::test).labels, (std::vector<std::int64_t>{1}));
    EXPECT_EQ(source->listing(Part::train).ids[0], "train/a/1.png");
    write_square(folder / (test + "/c/1.png"), 1, 1, 1);
    expect_contains(error_of([&] { open_image_folder(folder.path(), {}); }),
                    "'c' is not among the training classes");
  }
}

TEST(ImageFolderSource, FollowsLinks) {
  const TemporaryFolder folder;
  write_square(folder / "elsewhere/1.png", 7, 7, 7);
  write_square(folder / "data/a/1.png", 1, 1, 1);
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "data/b");
  const auto source = open_image_folder(folder / "data", {});
  EXPECT_TRUE(at::equal(source->images(Part::train, {1})[0], coloured_square(7, 7, 7, 32)));
}

TEST(ImageFolderSource, RefusesEmptyFoldersAndDamagedPictures) {
  const TemporaryFolder folder;
  const auto open = [&] { return open_image_folder(folder.path(), {}); };
  expect_contains(error_of([&] { open(); }), "one for each class");
  write_square(folder / "a/1.png", 1, 1, 1);
  std::filesystem::create_directory(folder / "b");
  expect_contains(error_of([&] { open(); }), "/b: no pictures");
  write_bytes(folder / "b/broken.png", "not a picture");
  const auto source = open();
  expect_contains(error_of([&] { source->images(Part::train, {0, 1}); }), "b/broken.png");
  expect_contains(error_of([&] { open_image_folder(folder / "none", {}); }), "no such folder");
}

TEST(Lacuna, NeedsBothPartsAndTestPicturesOfEveryIdentity) {
  const TemporaryFolder folder;
  write_square(folder / "train/p/1.png", 1, 1, 1);
  const auto open = [&] { return open_lacuna(folder.path(), {}); };
  expect_contains(error_of([&] { open(); }), "must have both");
  write_square(folder / "train/q/1.png", 1, 1, 1);
  write_square(folder / "test/p/1.png", 1, 1, 1);
  expect_contains(error_of([&] { open(); }), "identity 'q' has no test pictures");
  write_square(folder / "test/q/1.png", 1, 1, 1);
  EXPECT_EQ(open()->classes().size(), 2);
}

class TinyImagenetSource : public ::testing::Test {
 protected:
  TinyImagenetSource() {
    write_jpeg(folder_ / "train/n02/images/n02_0.JPEG", coloured_square(200, 10, 10, 64));
    write_jpeg(folder_ / "train/n01/images/n01_0.JPEG", coloured_square(10, 200, 10, 64));
    write_jpeg(folder_ / "train/n01/images/n01_1.JPEG", coloured_square(10, 10, 200, 64));
    write_jpeg(folder_ / "val/images/val_0.JPEG", coloured_square(1, 1, 1, 64));
    write_jpeg(folder_ / "val/images/val_1.JPEG", coloured_square(1, 1, 1, 64));
    annotate("val_0.JPEG\tn02\t0\t0\t62\t62\nval_1.JPEG\tn01\t1\t2\t3\t4\n");
  }
  void annotate(const std::string& lines) {
    write_bytes(folder_ / "val/val_annotations.txt", lines);
  }
  std::unique_ptr<DataSource> open() { return open_tiny_imagenet(folder_.path(), {}); }

  TemporaryFolder folder_;
};

TEST_F(TinyImagenetSource, ReadsItsOwnLayout) {
  const auto source = open();
  EXPECT_EQ(source->classes().names, (std::vector<std::string>{"n01", "n02"}));
  EXPECT_EQ(source->listing(Part::train).ids[2], "train/n02/images/n02_0.JPEG");
  EXPECT_EQ(source->listing(Part::train).labels, (std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_EQ(source->listing(Part::test).ids[0], "val/images/val_0.JPEG");
  EXPECT_EQ(source->listing(Part::test).labels, (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(source->images(Part::train, {0}).sizes(), (at::IntArrayRef{1, 3, 64, 64}));
}

TEST_F(TinyImagenetSource, RefusesAnnotationsThatDoNotMatchThePictures) {
  annotate("val_0.JPEG\tn02\t0\n");
  expect_contains(error_of([&] { open(); }), "val_1.JPEG: not named");
  annotate("val_0.JPEG\tn02\nval_1.JPEG\tn01\nval_2.JPEG\tn01\n");
  expect_contains(error_of([&] { open(); }), "names 3 pictures, but 2");
  annotate("val_0.JPEG\tn02\nval_1.JPEG\tn77\n");
  expect_contains(error_of([&] { open(); }), "class 'n77'");
  annotate("val_0.JPEG\tn02\nval_0.JPEG\tn01\n");
  expect_contains(error_of([&] { open(); }), ":2: 'val_0.JPEG' is annotated twice");
  annotate("val_0.JPEG\n");
  expect_contains(error_of([&] { open(); }), "no class behind");
}

}  // namespace
}  // namespace pumice::testing
