#include "pumice/data/jpeg_decoder.h"

#include <cstddef>
#include <cstdio>
// libjpeg's header needs the two above first.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>

#include "pumice/core/error.h"
#include "pumice/data/image_file.h"

namespace pumice {
namespace {

// libjpeg reports errors by a function that must not return, so we jump. The functions that call
// setjmp hold no C++ object whose destructor a jump could skip.
struct Decoder {
  jpeg_decompress_struct state{};
  jpeg_error_mgr manager{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = "";
};

void jump_out(j_common_ptr state) {
  auto* decoder = static_cast<Decoder*>(state->client_data);
  state->err->format_message(state, decoder->message);
  std::longjmp(decoder->escape, 1);
}

// A warning that pixels are missing is an error to us; other warnings (stray bytes between markers,
// common in collected pictures) leave the pixels as they are.
void judge_warning(j_common_ptr state, int level) {
  const int code = state->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) jump_out(state);
}

void keep_quiet(j_common_ptr) {}

bool read_header(Decoder& decoder, const unsigned char* bytes, unsigned long size) {
  if (setjmp(decoder.escape)) return false;
  jpeg_create_decompress(&decoder.state);
  decoder.state.client_data = &decoder;
  jpeg_mem_src(&decoder.state, bytes, size);
  jpeg_read_header(&decoder.state, TRUE);
  return true;
}

// `pixels` holds H×W×C bytes.
bool read_pixels(Decoder& decoder, unsigned char* pixels, std::size_t row_size) {
  if (setjmp(decoder.escape)) return false;
  jpeg_start_decompress(&decoder.state);
  while (decoder.state.output_scanline < decoder.state.output_height) {
    JSAMPROW row = pixels + row_size * decoder.state.output_scanline;
    jpeg_read_scanlines(&decoder.state, &row, 1);
  }
  jpeg_finish_decompress(&decoder.state);
  return true;
}

struct DecoderOwner {
  Decoder decoder;

  DecoderOwner() {
    decoder.state.err = jpeg_std_error(&decoder.manager);
    decoder.state.client_data = &decoder;
    decoder.manager.error_exit = jump_out;
    decoder.manager.emit_message = judge_warning;
    decoder.manager.output_message = keep_quiet;
  }
  ~DecoderOwner() { jpeg_destroy_decompress(&decoder.state); }
  DecoderOwner(const DecoderOwner&) = delete;
  DecoderOwner& operator=(const DecoderOwner&) = delete;
};

}  // namespace

bool is_jpeg(const std::string& bytes) {
  return bytes.starts_with("\xff\xd8\xff");
}

at::Tensor decode_jpeg(const std::string& bytes, const std::string& name) {
  DecoderOwner owner;
  Decoder& decoder = owner.decoder;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!read_header(decoder, data, bytes.size())) {
    fail(name, ": damaged JPEG, ", decoder.message);
  }
  const J_COLOR_SPACE space = decoder.state.jpeg_color_space;
  if (space == JCS_CMYK || space == JCS_YCCK) {
    fail(name, ": a CMYK picture, must be grey or RGB");
  }
  const auto height = static_cast<std::int64_t>(decoder.state.image_height);
  const auto width = static_cast<std::int64_t>(decoder.state.image_width);
  check_picture_size(name, height, width);
  const std::int64_t channels = space == JCS_GRAYSCALE ? 1 : 3;
  decoder.state.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  at::Tensor pixels = at::empty({height, width, channels}, at::kByte);
  if (!read_pixels(decoder, pixels.data_ptr<unsigned char>(),
                   static_cast<std::size_t>(width * channels))) {
    fail(name, ": damaged JPEG, ", decoder.message);
  }
  return pixels.permute({2, 0, 1}).contiguous();
}

}  // namespace pumice
