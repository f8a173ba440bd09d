# make demo   install what is missing, build, train the demo network
# make test   install what is missing, build, run every test
# The rest is plain CMake: cmake --preset dev|release|sanitize|benchmark.

.PHONY: demo test build benchmark format clean

build:
	tools/install-dependencies
	cmake --preset release
	cmake --build --preset release

demo: build
	mkdir -p build/demo
	build/release/pumice train --init weights/fashion-mnist-allcnn-w0.25.safetensors \
	  --data fashion-mnist --classes 0-4 --per-class 100 --test-per-class 100 \
	  --batch 32 --rate 0.003 --weight-decay 0.02 --out build/demo/w.safetensors --force

test:
	tools/install-dependencies --test
	cmake --preset dev
	cmake --build --preset dev
	ctest --preset dev

benchmark:
	tools/install-dependencies
	cmake --preset benchmark
	cmake --build --preset benchmark

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf build
