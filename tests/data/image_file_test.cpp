#include "pumice/data/image_file.h"

#include <gtest/gtest.h>

#include "command.h"
#include "data/made_files.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

at::Tensor random_image(std::int64_t channels, std::int64_t height, std::int64_t width) {
  at::manual_seed(3);
  return at::randint(0, 256, {channels, height, width}, at::kByte);
}

TEST(ImageFile, PngComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  for (const std::int64_t channels : {1, 3}) {
    const at::Tensor image = random_image(channels, 5, 7);
    write_png(folder / "a.png", image);
    EXPECT_TRUE(at::equal(read_image(folder / "a.png", channels), image));
  }
}

TEST(ImageFile, GreyIsRepeatedAndColourIsWeighted) {
  const TemporaryFolder folder;
  const at::Tensor grey = random_image(1, 4, 4);
  write_png(folder / "grey.png", grey);
  EXPECT_TRUE(at::equal(read_image(folder / "grey.png", 3), grey.expand({3, 4, 4})));
  write_png(folder / "colour.png", coloured_square(200, 100, 50));
  const int expected = 124;  // .299·200 + .587·100 + .114·50 = 124.2
  EXPECT_TRUE(
      at::equal(read_image(folder / "colour.png", 1), at::full({1, 8, 8}, expected, at::kByte)));
}

TEST(ImageFile, JpegIsReadInColourAndGrey) {
  const TemporaryFolder folder;
  write_jpeg(folder / "a.jpg", coloured_square(200, 100, 50, 16));
  const at::Tensor difference =
      read_image(folder / "a.jpg", 3).to(at::kInt) - coloured_square(200, 100, 50, 16).to(at::kInt);
  EXPECT_LE(difference.abs().max().item<int>(), 3);
  write_jpeg(folder / "g.jpg", at::full({1, 16, 16}, 77, at::kByte));
  const at::Tensor grey = read_image(folder / "g.jpg", 3);
  EXPECT_EQ(grey.sizes(), (at::IntArrayRef{3, 16, 16}));
  EXPECT_LE((grey.to(at::kInt) - 77).abs().max().item<int>(), 1);
}

TEST(ImageFile, FormatIsRecognisedByContentNotByName) {
  const TemporaryFolder folder;
  write_jpeg(folder / "really-a-jpeg.png", coloured_square(10, 20, 30));
  EXPECT_EQ(read_image(folder / "really-a-jpeg.png", 3).size(0), 3);
}

TEST(ImageFile, TransparencyIsLaidOnBlack) {
  const TemporaryFolder folder;
  const std::string script = std::string(PUMICE_SOURCE_DIR) + "/tests/fixtures/write_rgba_png.py";
  const CommandResult made = run_command(std::string(PUMICE_PYTHON) + " " + script + " " +
                                         (folder / "a.png").string() + " 200 100 50 128");
  ASSERT_EQ(made.exit_code, 0) << made.error;
  const at::Tensor image = read_image(folder / "a.png", 3);
  EXPECT_EQ(image[0][0][0].item<int>(), 100);  // 200·128/255 = 100.4
  EXPECT_EQ(image[1][0][0].item<int>(), 50);
  EXPECT_EQ(image[2][0][0].item<int>(), 25);
}

TEST(ImageFile, RefusesTruncatedFilesByName) {
  const TemporaryFolder folder;
  write_png(folder / "a.png", random_image(3, 40, 40));
  write_jpeg(folder / "a.jpg", random_image(3, 40, 40));
  for (const char* name : {"a.png", "a.jpg"}) {
    const std::string whole = content_of(folder / name);
    for (const double share : {0.1, 0.5, 0.9}) {
      const auto size = static_cast<std::size_t>(share * static_cast<double>(whole.size()));
      write_bytes(folder / name, whole.substr(0, size));
      const std::string error = error_of([&] { read_image(folder / name, 3); });
      expect_contains(error, name);
      expect_contains(error, "damaged");
    }
  }
}

TEST(ImageFile, RefusesHugeDimensionsBeforeTakingMemory) {
  const TemporaryFolder folder;
  write_jpeg(folder / "a.jpg", random_image(3, 16, 16));
  std::string bytes = content_of(folder / "a.jpg");
  const std::size_t frame = bytes.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (std::size_t k = 5; k < 9; ++k) bytes[frame + k] = '\xfd';  // 65021×65021
  write_bytes(folder / "a.jpg", bytes);
  expect_contains(error_of([&] { read_image(folder / "a.jpg", 3); }), "must be at least one");
}

TEST(ImageFile, RefusesOtherFilesAndCmyk) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.png", "GIF89a");
  expect_contains(error_of([&] { read_image(folder / "a.png", 3); }), "neither PNG nor JPEG");
  expect_contains(error_of([&] { read_image(folder / "missing.png", 3); }), "missing.png");
  write_jpeg(folder / "cmyk.jpg", random_image(4, 8, 8));
  expect_contains(error_of([&] { read_image(folder / "cmyk.jpg", 3); }), "CMYK");
}

TEST(ResizeImages, ConstantStaysConstantAndSameSizeStaysSame) {
  const at::Tensor constant = at::full({2, 3, 50, 70}, 93, at::kByte);
  EXPECT_TRUE(at::equal(resize_images(constant, 32), at::full({2, 3, 32, 32}, 93, at::kByte)));
  EXPECT_TRUE(at::equal(resize_images(constant, 64), at::full({2, 3, 64, 64}, 93, at::kByte)));
  const at::Tensor image = random_image(3, 32, 32).unsqueeze(0);
  EXPECT_TRUE(at::equal(resize_images(image, 32), image));
}

// Halving with a triangle of half-width 2 weighs (1, 3, 3, 1)/8; on a ramp away from the edges that
// is the value in the middle: 2i + 0.5.
TEST(ResizeImages, HalvingARampTakesTheMiddle) {
  const at::Tensor ramp =
      at::arange(16, at::kFloat).view({1, 1, 1, 16}).expand({1, 1, 16, 16}).contiguous();
  const at::Tensor half = resize_images(ramp, 8);
  for (std::int64_t i = 1; i < 7; ++i) {
    EXPECT_NEAR(half[0][0][3][i].item<float>(), 2 * static_cast<float>(i) + 0.5F, 1e-4F);
  }
}

TEST(ResizeImages, FineStripesBecomeGreyInsteadOfAliases) {
  at::Tensor stripes = at::zeros({1, 1, 64, 64}, at::kByte);
  stripes.slice(3, 0, 64, 2).fill_(255);
  const at::Tensor small = resize_images(stripes, 16).slice(3, 1, 15).to(at::kInt);
  EXPECT_LE((small - 128).abs().max().item<int>(), 2);
}

TEST(ResizeImages, LongPicturesAreCutToTheirCentre) {
  at::Tensor image = at::zeros({1, 1, 8, 24}, at::kByte);
  image.slice(3, 8, 16).fill_(200);
  const at::Tensor square = resize_images(image, 8);
  EXPECT_TRUE(at::equal(square, at::full({1, 1, 8, 8}, 200, at::kByte)));
  expect_contains(error_of([] {
                    resize_images(at::zeros({1, 1, 1, 200}, at::kByte), 8);
                  }),
                  "at most 100 times");
}

TEST(ResizeImages, AgreesWithPythonsReference) {
  const TemporaryFolder folder;
  const at::Tensor image = random_image(3, 45, 61);
  write_png(folder / "in.png", image);
  write_bytes(folder / "in.raw",
              std::string(static_cast<const char*>(image.contiguous().data_ptr()), image.nbytes()));
  const std::string script = std::string(PUMICE_SOURCE_DIR) + "/tests/fixtures/resize_reference.py";
  for (const std::int64_t size : {16, 60}) {
    const CommandResult made =
        run_command(std::string(PUMICE_PYTHON) + " " + script + " " + (folder / "in.raw").string() +
                    " 3 45 61 " + std::to_string(size) + " " + (folder / "out.raw").string());
    ASSERT_EQ(made.exit_code, 0) << made.error;
    std::string bytes = content_of(folder / "out.raw");
    ASSERT_EQ(bytes.size(), static_cast<std::size_t>(3 * size * size));
    const at::Tensor expected = at::from_blob(bytes.data(), {3, size, size}, at::kByte);
    const at::Tensor ours = resize_images(image.unsqueeze(0), size)[0];
    EXPECT_LE((ours.to(at::kInt) - expected.to(at::kInt)).abs().max().item<int>(), 1);
    EXPECT_LT((ours != expected).to(at::kFloat).mean().item<float>(), 0.01F);
  }
}

}  // namespace
}  // namespace pumice::testing
