# Trainyard. `make run` trains the example on real data, `make test` tests everything, `make help` lists the rest.
#
#   variant=release|debug|asan|ubsan|tsan   each builds into its own folder under build/
#   V=1                                     shows the commands
variant = release
V       = 0

CC     = gcc
CLANG  = clang-14
FORMAT = clang-format-14
B      = build/$(variant)
BIN    = $(if $(filter release,$(variant)),build,$(B))/bin
PLUGINS = $(dir $(BIN))lib

CFLAGS_release = -O2 -g1 -D_FORTIFY_SOURCE=2
CFLAGS_debug   = -O0 -g3 -DTY_DEBUG
CFLAGS_asan    = -O1 -g -DTY_DEBUG -fsanitize=address -fno-omit-frame-pointer
CFLAGS_ubsan   = -O1 -g -DTY_DEBUG -fsanitize=undefined -fno-sanitize-recover=all
CFLAGS_tsan    = -O1 -g -DTY_DEBUG -fsanitize=thread
BASICS  = -std=gnu17 -I. -pthread -Wall -Wextra -Werror
CFLAGS  = $(BASICS) -fopenmp -fPIE -fstack-protector-strong $(CFLAGS_$(variant))
LDFLAGS = -pie -pthread -rdynamic -Wl,-z,relro -Wl,-z,now -Wl,--as-needed $(filter -fsanitize%,$(CFLAGS_$(variant)))
LIBS    = -ldnnl -lyaml -lcrypto -lz -ljpeg -lpng -lpcre2-8 -lcurl -lm -ldl $(if $(filter tsan,$(variant)),,-lgomp)

MAINS   = $(wildcard entrypoint/train.c entrypoint/trainyard.c)
SOURCES = $(filter-out $(MAINS) dist/plugin/%,$(wildcard base/*.c container/*.c container/*/*.c container/*/*/*.c compiler/*.c compiler/*/*.c \
          compiler/target/*/*.c compiler/import/*/*.c dist/*.c dist/*/*.c estimator_spec/*.c estimator_spec/*/*.c entrypoint/*.c)) \
          $(if $(filter tsan,$(variant)),tests/tsan/gomp.c)
LIB     = $(B)/libtrainyard.a
UNITS   = $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/*.c))
TOOLS   = $(patsubst tests/tools/%.c,$(B)/tools/%,$(wildcard tests/tools/*.c))
FAKES   = $(patsubst tests/fakes/lib%.c,$(B)/fakes/lib%.so.1,$(wildcard tests/fakes/lib*.c)) \
          $(addprefix $(B)/fakes/gpu/,libnvrtc.so.13 libcublasLt.so.13 libcudnn.so.9 libnccl.so.2)
TARGETS = $(patsubst tests/fuzz/%.c,%,$(filter-out %.main.c,$(wildcard tests/fuzz/*.c)))

Q   := $(if $(filter 0,$(V)),@)
say  = $(if $(filter 0,$(V)),@printf '  %-6s %s\n' $(1) $@)

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# What the main commands build with: all cores, unless the caller has said how many.
CORES := $(shell nproc)
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(CORES))
.PHONY: again all lib plugins api install units tools fakes replays deps test-deps run bundle gpu-image test mutants cuda grid keras-judge tokenizer-judge hugging-face zoo large-upload local-jobs bench fresh fuzz graphs kills format check-format clean help

all: $(MAINS:entrypoint/%.c=$(BIN)/%) plugins api
api: $(PLUGINS)/libtrainyard.so
plugins: $(foreach name,mpi pmix ucx,$(if $(wildcard dist/plugin/$(name).c),$(PLUGINS)/libtrainyard-$(name).so))
lib: $(LIB)
units: $(UNITS)
tools: $(TOOLS)
fakes: $(FAKES)
replays: $(TARGETS:%=$(B)/replay/%)

# Where there is no repository (an image is built without .git), the commit is given: make COMMIT=...
COMMIT ?= $(shell git rev-parse --short=10 HEAD 2>/dev/null || echo unknown)
$(B)/obj/entrypoint/command_info.o: BASICS += -DTY_COMMIT='"$(COMMIT)"'
$(B)/obj/entrypoint/command_info.o: $(B)/commit
$(B)/commit: again
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
$(B)/obj/%.o: %.c Makefile
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# Made anew each time: an object whose source is gone must leave the archive too.
$(LIB): $(SOURCES:%.c=$(B)/obj/%.o)
	$(call say,AR)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(BIN)/%: $(B)/obj/entrypoint/%.o $(LIB)
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# Plug-ins (dist/plugin.h): shared objects, each with the one foreign library that it is for, with base/ and dist/ in copies
# of its own, since the program that opens them may be anybody's.
PIC_SOURCES = $(filter-out dist/plugin/%,$(wildcard base/*.c dist/*.c dist/*/*.c))
PIC         = $(B)/libtrainyard.pic.a
plugin_mpi  = ompi-c
plugin_pmix = pmix
plugin_ucx  = ucx
packages    = $(shell pkg-config $(1) $(plugin_$(2)))
PIC_CFLAGS  = $(filter-out -fPIE,$(CFLAGS)) -fPIC -fvisibility=hidden
$(B)/pic/dist/plugin/%.o: BASICS += $(patsubst -I%,-isystem %,$(call packages,--cflags,$(firstword $(subst _, ,$(*F)))))
$(B)/pic/%.o: %.c Makefile
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PIC_CFLAGS) -MMD -MP -c -o $@ $<

$(PIC): $(PIC_SOURCES:%.c=$(B)/pic/%.o)
	$(call say,AR)
	@rm -f $@
	$(Q)ar rcs $@ $^

.SECONDEXPANSION:
plugin_objects = $(patsubst %.c,$(B)/pic/%.o,$(wildcard dist/plugin/$(1).c dist/plugin/$(1)_*.c))
$(PLUGINS)/libtrainyard-%.so: $$(call plugin_objects,$$*) $(PIC)
	$(call say,LINK)
	@mkdir -p $(@D)
	$(if $(filter release,$(variant)),@ln -sfn ../lib $(B)/lib)
	$(Q)$(CC) -shared $(filter-out -pie -rdynamic,$(LDFLAGS)) -Wl,--no-undefined -o $@ $^ \
	    $(filter -l%,$(call packages,--libs,$*)) $(LIBS)

# The library of programs that users write (include/trainyard/trainyard.h): what dist/api needs of base/ and dist/, and nothing of
# it to be seen but trainyard_*. Its own number changes when old programs could not go on with it.
API_OBJECTS = $(patsubst %.c,$(B)/pic/%.o,$(wildcard dist/api/*.c))
$(PLUGINS)/libtrainyard.so.1: $(API_OBJECTS) $(PIC) dist/api/exports
	$(call say,LINK)
	@mkdir -p $(@D)
	$(if $(filter release,$(variant)),@ln -sfn ../lib $(B)/lib)
	$(Q)$(CC) -shared $(filter-out -pie -rdynamic,$(LDFLAGS)) -Wl,--no-undefined -Wl,-soname,$(@F) \
	    -Wl,--version-script=dist/api/exports -o $@ $(API_OBJECTS) $(PIC) $(LIBS)
$(PLUGINS)/libtrainyard.so: $(PLUGINS)/libtrainyard.so.1
	$(if $(filter release,$(variant)),@ln -sfn ../include $(PLUGINS)/../include)
	@ln -sfn $(<F) $@

# Where programs, libraries and headers go; DESTDIR is put in front while packages are made.
PREFIX  = /usr/local
DESTDIR =
INTO    = $(DESTDIR)$(PREFIX)
VERSION = $(shell sed -n 's/.*TY_VERSION  *"\(.*\)"/\1/p' base/version.h)
install: all
	$(Q)install -d $(INTO)/bin $(INTO)/lib/pkgconfig $(INTO)/lib/trainyard $(INTO)/include/trainyard
	$(Q)install -m 755 $(BIN)/train $(BIN)/trainyard $(INTO)/bin
	$(Q)install -m 755 $(PLUGINS)/libtrainyard.so.1 $(INTO)/lib
	$(Q)ln -sfn libtrainyard.so.1 $(INTO)/lib/libtrainyard.so
	$(Q)for plugin in $(wildcard $(PLUGINS)/libtrainyard-*.so); do install -m 755 $$plugin $(INTO)/lib/trainyard; done
	$(Q)install -m 644 include/trainyard/*.h $(INTO)/include/trainyard
	$(Q)sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@VERSION@,$(VERSION),' dist/api/trainyard.pc.in >$(INTO)/lib/pkgconfig/trainyard.pc

# As programs of users include it: <trainyard/trainyard.h>.
$(B)/obj/tests/unit/api.o: BASICS += -Iinclude

# NVIDIA's headers, if they are here: tests hold our declarations against them. Nothing else needs them.
CUDA_HOME ?= /usr/local/cuda
$(B)/obj/tests/unit/cuda_%.o: BASICS += -idirafter $(CUDA_HOME)/include

# Libraries that stand in for ones that this machine lacks, for tests.
FAKE_DRIVER = $(addprefix tests/fakes/,driver.c memory.c stream.c graph.c kernel.c)
$(B)/fakes/lib%.so.1: tests/fakes/lib%.c $(FAKE_DRIVER) tests/fakes/driver.h tests/fakes/fake.h Makefile compiler/target/cuda/api.h
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASICS) -O1 -fPIC -shared -o $@ $< $(if $(filter cuda,$*),$(FAKE_DRIVER))

# Beside the driver, in a folder of their own: ones that stand in for what is installed on some machines.
$(B)/fakes/gpu/libnvrtc.so.13: tests/fakes/gpu/libnvrtc.c
$(B)/fakes/gpu/libcublasLt.so.13: tests/fakes/gpu/libcublasLt.c tests/fakes/gpu/element.h
$(B)/fakes/gpu/libcudnn.so.9: tests/fakes/gpu/libcudnn.c tests/fakes/gpu/element.h
$(B)/fakes/gpu/libnccl.so.2: tests/fakes/gpu/libnccl.c tests/fakes/gpu/element.h
$(B)/fakes/gpu/%: tests/fakes/fake.h compiler/target/cuda/api.h compiler/target/cuda/head.c Makefile
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASICS) -O2 -fPIC -shared -o $@ $(filter tests/fakes/gpu/%.c,$^) compiler/target/cuda/head.c base/tensor.c

# Judges that run over folders of cases: tests/train-cases and tests/onnx-backend call them.
$(B)/tools/%: $(B)/obj/tests/tools/%.o $(LIB)
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# Measures this machine's instructions, which generated kernels use too.
$(B)/obj/bench/ceilings.o: BASICS += -march=native -mprefer-vector-width=512 -ffp-contract=fast -fno-math-errno
$(B)/bench/ours: $(B)/obj/bench/ours_input.o
$(B)/bench/products: $(B)/obj/bench/products_conv.o $(B)/obj/bench/products_replay.o
$(B)/bench/%: $(B)/obj/bench/%.o $(LIB)
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(LIBS)

$(B)/unit/%: $(B)/obj/tests/unit/%.o $(LIB)
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka -lcjson $(LIBS)

# A fuzz target twice: here with a main that replays its corpus, and below as the real thing.
$(B)/replay/%: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/replay.main.o $(LIB)
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# clang has no OpenMP of its own in Debian's clang-14: pragmas are skipped, omp.h and libgomp are gcc's. Of gcc's headers that one
# alone: clang's stdatomic.h would give way to gcc's.
FUZZ_FLAGS = $(BASICS) -g -O1 -DTY_DEBUG -Wno-unknown-pragmas -Wno-unused-command-line-argument \
             -idirafter build/fuzz/include -fsanitize=address,undefined -fno-sanitize-recover=all
build/fuzz/include/omp.h:
	@mkdir -p $(@D)
	@ln -sfn $(shell $(CC) -print-file-name=include)/omp.h $@
build/fuzz/obj/%.o: %.c Makefile | build/fuzz/include/omp.h
	$(call say,CLANG)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

build/fuzz/libtrainyard.a: $(SOURCES:%.c=build/fuzz/obj/%.o)
	$(call say,AR)
	@rm -f $@
	$(Q)ar rcs $@ $^

build/fuzz/%: build/fuzz/obj/tests/fuzz/%.o build/fuzz/libtrainyard.a
	$(call say,LINK)
	$(Q)$(CLANG) -pthread -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS)

# `make fuzz` builds, `make fuzz seconds=600` also runs each target that long (target=NAME: only that one).
target = $(TARGETS)
fuzz: $(target:%=build/fuzz/%)
	$(if $(seconds),$(Q)for t in $(target); do tests/fuzz/run $$t $(seconds) || exit 1; done)

deps:
	$(Q)docker/install docker/packages.build
test-deps: deps
	$(Q)docker/install docker/packages.test

# Random graphs, compiled and interpreted: `make graphs count=10000 first=1`.
count = 1000
first = 1
graphs: $(B)/tools/graphs
	$(Q)$< --first $(first) --count $(count)

run: deps
	$(Q)$(MAKE) $(JOBS) all
	$(Q)examples/digits/run $(BIN)/train build/digits

# A folder that runs on other Linuxes too, and a tar.gz of it. Its programs look for libraries beside themselves first, also for
# those that others ask for: hence an RPATH, not a RUNPATH. Symbols stay, debug information and the build's path do not.
BUNDLE_LDFLAGS = -Wl,-rpath,'$$ORIGIN/../lib' -Wl,--disable-new-dtags -Wl,-S
$(B)/bundle/cc: $(B)/obj/docker/bundle/cc.o
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -Wl,-S -o $@ $^
$(B)/bundle/%: $(B)/obj/entrypoint/%.o $(LIB)
	$(call say,LINK)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(BUNDLE_LDFLAGS) -o $@ $^ $(LIBS)

bundle: deps
	$(Q)$(MAKE) $(JOBS) $(B)/bundle/train $(B)/bundle/trainyard $(B)/bundle/cc plugins
	$(Q)docker/bundle/make $(B)/bundle build/bundle $(COMMIT)

# The image with NVIDIA's libraries, built and tried: downloads 1.1 GB, so `make test` leaves it out.
gpu-image: $(B)/unit/cuda_compile all
	$(Q)tests/docker/gpu

test: test-deps
	$(Q)$(MAKE) $(JOBS) all units tools fakes replays
	$(Q)tests/run $(variant) $(if $(only),'$(only)')

# The long one: `make test` kills 40 times.
kills:
	$(Q)$(MAKE) $(JOBS) all
	$(Q)tests/entrypoint/kill_sweep.sh $(count)
kills: count = 200

# 10,000 damaged ONNX files, 10,000 damaged data files and 8,000 of Keras; `make test` runs the first 1,000 of each, of Keras' 300.
mutants: $(B)/tools/onnx_mutants $(B)/tools/data_mutants $(B)/tools/keras_mutants $(B)/tools/tf_mutants
	$(Q)TY_VARIANT=$(variant) tests/import/onnx_mutants.sh 10000
	$(Q)TY_VARIANT=$(variant) tests/import/data_mutants.sh 10000
	$(Q)TY_VARIANT=$(variant) tests/import/keras_mutants.sh 8000
	$(Q)TY_VARIANT=$(variant) tests/import/tensorflow_mutants.sh 4000

# Kernels of all trainings, ONNX cases and workloads, compiled by NVRTC for five generations of GPUs: minutes, and no GPU.
cuda: $(TOOLS) $(B)/bench/ours
	$(Q)TY_BUILD=$(B) tests/cuda_kernels.sh --all

# Kernels as they are printed for GPUs, run on the host: ONNX cases and all trainings in three orders of threads, then all
# trainings on the libraries that stand in for NVIDIA's. What one has compiled serves the others.
grid: TESTED = TY_BUILD=$(B) CC=$(CURDIR)/tests/cc TY_KEPT=$(CURDIR)/$(B)/kept
grid:
	$(Q)$(MAKE) $(JOBS) units tools fakes
	$(Q)rm -rf $(B)/kept && mkdir -p $(B)/kept
	$(Q)$(TESTED) tests/grid.sh --all
	$(Q)$(TESTED) tests/import/onnx_backend.sh --grid
	$(Q)$(TESTED) tests/cuda_run.sh --all
	$(Q)$(TESTED) tests/cuda_mirror.sh --all

# 40 random Keras models, trained here and by Keras: some minutes, and a virtual environment with TensorFlow; `make test` takes 5.
keras-judge: all
	$(Q)TY_BIN=$(BIN) tests/keras/judge.sh 40 --verbose
	$(Q)TY_BIN=$(BIN) tests/keras/judge.sh 4 --seed 2 --verbose
	$(Q)TY_BIN=$(BIN) tests/keras/optimizers.sh

# 24 kinds of tokenizers on 10,000 texts, beside Hugging Face's library: minutes, and its Python (tests/tokenizer/judge.sh).
tokenizer-judge: $(B)/tools/tokenize
	$(Q)TY_BUILD=$(B) tests/tokenizer/judge.sh

# Five of Hugging Face's models as ONNX and as SavedModels: a minute or two, and its Python (tests/import/hugging_face.sh).
hugging-face: all
	$(Q)TY_BIN=$(BIN) tests/import/hugging_face.sh

# 61 models of torchvision and Hugging Face in three ways of exporting, 127 of these and of timm in one, 14 of
# keras.applications: a quarter of an hour, and their Pythons (tests/import/zoo.sh).
zoo: all
	$(Q)TY_BIN=$(BIN) tests/import/zoo.sh all

# An object of 1 GiB in parts, stopped in the middle, through moto's server: a minute; `make test` sends 40 MiB.
large-upload: all $(B)/tools/s3
	$(Q)TY_S3_MB=1024 TY_BUILD=$(B) TY_BIN=$(BIN) tests/aws/s3_moto.sh

# Digits and clicks on 1, 2 and 3 hosts of this machine, as processes and as containers: minutes; `make test` takes one of each way.
local-jobs: all
	$(Q)TY_JOBS_HOSTS="1 2 3" TY_BUILD=$(B) TY_BIN=$(BIN) tests/docker/local_jobs.sh

# Only the programs; `bench/compare` runs ours beside PyTorch, JAX and TensorFlow.
bench: $(addprefix $(B)/bench/,ours scale products ceilings overhead read stream)

fresh:
	$(Q)tests/fresh.sh

C_FILES = $(shell find $(wildcard base container compiler dist estimator_spec entrypoint docker tests examples bench) -name '*.[ch]')
format:
	$(Q)$(FORMAT) -i $(C_FILES)
check-format:
	$(Q)$(FORMAT) --dry-run -Werror $(C_FILES)

clean:
	rm -rf build

help:
	@echo 'make             build/bin/train and build/bin/trainyard'
	@echo 'make run         train the digits example, from data to summary'
	@echo 'make test        install what tests need, build, run everything   (variant=asan|ubsan|tsan too; only="unit/*")'
	@echo 'make install     programs, libraries, headers and trainyard.pc     (PREFIX=/usr/local DESTDIR=)'
	@echo 'make bundle      build/bundle and build/bundle.tar.gz: runs on other Linuxes too'
	@echo 'make bench       build the side-by-side benchmark; bench/compare runs it'
	@echo 'make fresh       both of them in a bare container, from a clean checkout'
	@echo 'make gpu-image   the image with NVIDIA'\''s libraries, built and tried    (downloads 1.1 GB)'
	@echo 'make fuzz        build the fuzz targets; seconds=60 runs them     (target=NAME)'
	@echo 'make graphs      random graphs, compiled and interpreted          (count=10000 first=1)'
	@echo 'make kills       SIGKILL at random moments of short trainings      (count=200)'
	@echo 'make mutants     damaged ONNX, data and Keras files, 10,000 or 8,000 each: taken or refused'
	@echo 'make cuda        kernels of everything as CUDA C, compiled by NVRTC: registers, spills, shared memory'
	@echo 'make grid        kernels of GPUs run on the host: ONNX cases and all trainings, in three orders of threads; no GPU'
	@echo 'make large-upload an upload of 1 GiB that is interrupted, against moto (TY_AWS_VENV)'
	@echo 'make local-jobs  both examples on 1, 2 and 3 hosts of this machine, with and without an engine'
	@echo 'make format      clang-format over all sources; check-format only looks'
	@echo 'make deps, make clean'

-include $(shell find build/$(variant)/obj build/$(variant)/pic build/fuzz/obj -name '*.d' 2>/dev/null)
