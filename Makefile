# make demo   install what is missing, build, run the demo: train, forget, audit, report
# make test   install what is missing, build, run every test
# The rest is plain CMake: cmake --preset dev|release|sanitize|benchmark.

.PHONY: demo test build benchmark format clean

build:
	tools/install-dependencies
	cmake --preset release
	cmake --build --preset release

demo: build
	build/release/pumice demo --out build/demo

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
