# libcoord: build, test, install.
#
## make              library; worker, pipeline, cartpole, elastic, unit_test in build/examples
## make deps         install what is missing to build, test and run (Debian, Ubuntu)
## make run          train CartPole-v1 to solved  [SEED=1] [COLLECTORS=2]
## make check        every test                   [TEST=name] [WERROR=1]
## make check-asan   the same under AddressSanitizer and UBSan
## make check-tsan   the same under ThreadSanitizer
## make museum       old mistakes, put back, have to turn tests red  [SHOW=name]
## make sim          random stories of a simulated cluster  [SEEDS=2000] [SEED=n TRACE=1]
## make bench        measurements as tables       [ARGS=...]
## make soak         processes that are killed     [MINUTES=1] [SEED=n]
## make fuzz         libFuzzer targets            [FUZZ_S=60] seconds each
## make lint         clang-format, clang-tidy, cppcheck
## make format       let clang-format rewrite the sources
## make doc          API reference, with Doxygen
## make install      [PREFIX=/usr/local] [LIBDIR=PREFIX/lib] [DESTDIR=]
## make clean        remove build output
##
## Any of them: BUILD=folder, CC=clang, CFLAGS=..., SAN=address,undefined,
## V=1 to see the commands, -jN for N jobs.

# --- What is made, and where ---------------------------------------------------------

VERSION := $(shell sed -n 's/^.define COORD_VERSION "\(.*\)"/\1/p' include/coord/api.h)
# The ABI number is not the release number: raise it only when a call that hosts
# already use is removed or changes meaning.
ABI     := 0
SONAME  := libcoord.so.$(ABI)

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
BUILD   := build
OBJ     := $(BUILD)/obj

STATIC_LIB := $(BUILD)/libcoord.a
SHARED_LIB := $(BUILD)/libcoord.so.$(VERSION)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:

# --- Sources: whatever lies in the folders --------------------------------------------

files   = $(sort $(wildcard $(1)/*.$(2) $(1)/*/*.$(2) $(1)/*/*/*.$(2)))
objects = $(patsubst %.c,$(OBJ)/%.o,$(1))

LIB_C     := $(call files,lib,c)
SUPPORT_C := $(call files,test/support,c)
BENCH_C   := $(call files,test/bench,c)
SOAK_C    := $(call files,test/soak,c)
FUZZ_C    := $(wildcard test/fuzz/fuzz_*.c)
TEST_C    := $(wildcard test/unit/test_*.c test/sim/test_*.c test/integration/test_*.c)
EXAMPLE_C := $(call files,examples,c)
HEADERS   := $(foreach folder,include lib examples test,$(call files,$(folder),h))
PUBLIC_H  := $(wildcard include/coord/*.h)
MAN_PAGES := $(wildcard lib/man/*.3)

# A file in examples/ is a program. A folder in there makes several: main.c is named
# after the folder, main_x.c is called folder-x, the other files are shared by them.
EXAMPLE_DIRS := $(sort $(patsubst examples/%/,%,$(dir $(wildcard examples/*/*.c))))
EXAMPLES     := $(patsubst examples/%.c,%,$(wildcard examples/*.c)) \
                $(patsubst examples/%/main.c,%,$(wildcard examples/*/main.c)) \
                $(subst /main_,-,$(patsubst examples/%.c,%,$(wildcard examples/*/main_*.c)))
# Those that are tests themselves need CMocka: left out where it is not, and never installed.
EXAMPLE_TESTS := unit_test
ifeq ($(shell pkg-config --exists cmocka 2> /dev/null && echo yes),)
EXAMPLES     := $(filter-out $(EXAMPLE_TESTS),$(EXAMPLES))
endif
# What is only to be looked at from the sources: with the fakes of test/ inside.
EXAMPLE_SHOWS := elastic
EXAMPLE_BINS  := $(addprefix $(BUILD)/examples/,$(EXAMPLES))

TEST_BINS   := $(TEST_C:%.c=$(BUILD)/%)
REPLAY_BINS := $(FUZZ_C:%.c=$(BUILD)/%)
FUZZ_BINS   := $(FUZZ_C:test/fuzz/%.c=$(BUILD)/fuzz/%)
PEER_BIN    := $(BUILD)/test/conformance_peer
BENCH_BIN   := $(if $(BENCH_C),$(BUILD)/test/bench/bench)
SOAK_BIN    := $(BUILD)/test/soak/soak

# --- Packages and flags ---------------------------------------------------------------

# What the library links. The one list: the .pc file is made from it, and
# pkgconfig/deps knows where each comes from.
LIB_PACKAGES := libcurl libmicrohttpd jansson libsodium sqlite3

# $(call pkg,NAME,ARGUMENTS) is asked when NAME is first used, and then kept in it.
pkg         = $(eval $(1) := $(shell pkg-config $(2)))$($(1))
LIB_CFLAGS  = $(call pkg,LIB_CFLAGS,--cflags $(LIB_PACKAGES))
LIB_LIBS    = $(call pkg,LIB_LIBS,--libs $(LIB_PACKAGES))
TEST_CFLAGS = $(call pkg,TEST_CFLAGS,--cflags cmocka)
TEST_LIBS   = $(call pkg,TEST_LIBS,--libs cmocka)
BLAS_CFLAGS = $(call pkg,BLAS_CFLAGS,--cflags openblas)
BLAS_LIBS   = $(call pkg,BLAS_LIBS,--libs openblas)

# Extras of one example folder or of one test program: CFLAGS_folder, LIBS_name, and
# EXTRA_name for objects and archives.
CFLAGS_cartpole          = $(BLAS_CFLAGS)
LIBS_cartpole            = $(BLAS_LIBS) -lm
CFLAGS_elastic           = -Itest
EXTRA_elastic            = $(call objects,$(addprefix test/support/fake_operator,.c _api.c _socket.c))
CFLAGS_unit_test         = $(TEST_CFLAGS)
LIBS_unit_test           = $(TEST_LIBS)
LIBS_test_cartpole       = $(BLAS_LIBS)
LIBS_test_cartpole_host  = $(BLAS_LIBS)
LIBS_test_cartpole_run   = $(BLAS_LIBS)
EXTRA_test_cartpole      = $(BUILD)/examples/cartpole.a
EXTRA_test_cartpole_host = $(BUILD)/examples/cartpole.a
EXTRA_test_cartpole_run  = $(BUILD)/examples/cartpole.a

CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla -Wformat=2 $(if $(filter 1,$(WERROR)),-Werror)
SANITIZE := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)

COMPILE := $(CC) -std=c11 -D_GNU_SOURCE -pthread -fPIC -fvisibility=hidden \
           $(WARNINGS) $(CPPFLAGS) $(CFLAGS) $(SANITIZE)
LINK    := $(CC) -pthread $(CFLAGS) $(SANITIZE) $(LDFLAGS)

$(OBJ)/lib/%.o:      INCLUDE = -Iinclude -Ilib $(LIB_CFLAGS)
$(OBJ)/test/%.o:     INCLUDE = -Iinclude -Ilib -Itest -Iexamples $(LIB_CFLAGS) $(TEST_CFLAGS) \
                               $(BLAS_CFLAGS)
# Examples may have them without CMocka.
$(OBJ)/test/support/fake_operator%.o: INCLUDE = -Iinclude -Ilib -Itest $(LIB_CFLAGS)
$(OBJ)/examples/%.o: INCLUDE = -Iinclude $(CFLAGS_$(notdir $(@D)))

# The shared library has to name all that it needs; under a sanitizer the program that
# loads it brings the run-time.
NO_UNDEFINED := $(if $(SAN),,-Wl,-z,defs)

ifneq ($(V),1)
Q := @
endif

# --- Library, examples, tests ---------------------------------------------------------

.PHONY: all lib examples
all: lib examples
lib: $(STATIC_LIB) $(SHARED_LIB)
examples: $(EXAMPLE_BINS)

# Written only when it changes, so that other flags or another compiler rebuild all.
FLAGS_TEXT = $(subst ','\'',$(COMPILE) $(LDFLAGS))
$(BUILD)/flags: FORCE
	@pkgconfig/deps look build
	@mkdir -p $(@D)
	@printf '%s\n' '$(FLAGS_TEXT)' | cmp -s - $@ || printf '%s\n' '$(FLAGS_TEXT)' > $@
.PHONY: FORCE

$(OBJ)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(COMPILE) $(INCLUDE) -MMD -MP -c -o $@ $<

define archive
@mkdir -p $(@D)
@echo '  AR    $@'
@rm -f $@
$(Q)ar rcs $@ $(filter %.o,$^)
endef

define link
@mkdir -p $(@D)
@echo '  LINK  $@'
$(Q)$(LINK) -o $@ $(filter %.o %.a,$^) $(LIBS) $(LIB_LIBS)
endef

$(STATIC_LIB): $(call objects,$(LIB_C)) $(BUILD)/flags
	$(archive)

$(SHARED_LIB): $(STATIC_LIB) lib/libcoord.map
	@echo '  LINK  $@'
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=lib/libcoord.map \
	    $(NO_UNDEFINED) -o $@ -Wl,--whole-archive $< -Wl,--no-whole-archive $(LIB_LIBS)

# Programs of one file.
$(BUILD)/examples/%: $(OBJ)/examples/%.o $(STATIC_LIB)
	$(link)

# Programs of one folder: $(1).
define example_folder
$(BUILD)/examples/$(1).a: $(call objects,$(filter-out examples/$(1)/main.c examples/$(1)/main_%,$(wildcard examples/$(1)/*.c)))
	$$(archive)
$(BUILD)/examples/$(1): $(OBJ)/examples/$(1)/main.o $(BUILD)/examples/$(1).a $(EXTRA_$(1)) $(STATIC_LIB)
	$$(link)
$(BUILD)/examples/$(1)-%: $(OBJ)/examples/$(1)/main_%.o $(BUILD)/examples/$(1).a $(STATIC_LIB)
	$$(link)
$(BUILD)/examples/$(1) $(BUILD)/examples/$(1)-%: LIBS = $$(LIBS_$(1))
endef
$(foreach folder,$(EXAMPLE_DIRS),$(eval $(call example_folder,$(folder))))

$(BUILD)/test/support.a: $(call objects,$(SUPPORT_C)) $(BUILD)/flags
	$(archive)

.SECONDEXPANSION:
$(TEST_BINS): LIBS = $(LIBS_$(@F)) $(TEST_LIBS) -lm
$(TEST_BINS): $(BUILD)/%: $(OBJ)/%.o $$(EXTRA_$$(@F)) $(BUILD)/test/support.a $(STATIC_LIB)
	$(link)

# A fuzz target is linked twice: with a plain main that replays files, for `check`, and
# with libFuzzer's main, for `fuzz`.
$(REPLAY_BINS): $(BUILD)/%: $(OBJ)/%.o $(OBJ)/test/fuzz/replay.o $(STATIC_LIB)
	$(link)
$(FUZZ_BINS): LIBS = -fsanitize=fuzzer
$(FUZZ_BINS): $(BUILD)/fuzz/%: $(OBJ)/test/fuzz/%.o $(STATIC_LIB)
	$(link)

# What the recorded exchanges are replayed against: by a test, and by hand.
$(PEER_BIN): $(BUILD)/%: $(OBJ)/%.o $(STATIC_LIB)
	$(link)

# The bench is one program of all files in its folder.
# gearmand, the yardstick, is measured along when its library is there.
$(BENCH_BIN): LIBS = $(if $(wildcard /usr/include/libgearman/gearman.h),-lgearman)
$(BENCH_BIN): $(call objects,$(BENCH_C)) $(BUILD)/test/support.a $(STATIC_LIB)
	$(link)

# So is the soak, whose processes are this program in its roles.
$(SOAK_BIN): $(call objects,$(SOAK_C)) $(STATIC_LIB)
	$(link)

ALL_C := $(LIB_C) $(EXAMPLE_C) $(TEST_C) $(SUPPORT_C) $(BENCH_C) $(SOAK_C) $(FUZZ_C) test/fuzz/replay.c \
         test/conformance_peer.c
-include $(patsubst %.c,$(OBJ)/%.d,$(ALL_C))

# --- Set-up ---------------------------------------------------------------------------

.PHONY: deps deps-dev
deps:
	@pkgconfig/deps install build check run
deps-dev:
	@pkgconfig/deps install build check run dev

# `run`, `check` and their like need no step before them, so they install what is
# missing first; the work itself is a second make, which then sees it.
SUBMAKE = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# --- Running --------------------------------------------------------------------------

.PHONY: run run-cartpole bench run-bench soak run-soak
run: deps
	$(SUBMAKE) run-cartpole
run-cartpole: $(filter $(BUILD)/examples/cartpole%,$(EXAMPLE_BINS))
	@$(BUILD)/examples/cartpole $(if $(SEED),--seed $(SEED)) \
	    $(if $(COLLECTORS),--collectors $(COLLECTORS))

bench: deps
	$(SUBMAKE) run-bench
run-bench: $(BENCH_BIN) examples
	@$(if $(BENCH_BIN),$(BENCH_BIN) $(ARGS),echo 'test/bench is empty: nothing to measure')

soak: deps
	$(SUBMAKE) run-soak
run-soak: $(SOAK_BIN)
	@$(SOAK_BIN) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

# --- Testing --------------------------------------------------------------------------

# A test is named by its path below test/, without suffix. The check_ scripts look at
# sources and at plain objects, so a sanitizer would tell them nothing.
TESTS := $(TEST_C:test/%.c=%) $(FUZZ_C:test/%.c=%) \
         $(patsubst test/%.sh,%,$(wildcard test/unit/*.sh test/sim/*.sh test/integration/*.sh)) \
         $(if $(SAN),,$(patsubst test/%.sh,%,$(wildcard test/check_*.sh)))

# TEST=map, TEST=test_map and TEST=unit/test_map all mean unit/test_map.
ifdef TEST
named    = $(filter $(1) %/$(1) %/test_$(1) %/fuzz_$(1) check_$(1),$(TESTS))
SELECTED := $(foreach t,$(TEST),$(or $(call named,$(t)),$(error there is no test "$(t)"; there are: $(TESTS))))
else
SELECTED := $(TESTS)
endif

LIMIT_S := 300
JOBS     = $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),$(shell nproc))

.PHONY: check check-asan check-tsan run-tests
check: deps
	$(SUBMAKE) run-tests
check-asan:
	$(SUBMAKE) check BUILD=$(BUILD)/asan SAN=address,undefined
check-tsan:
	$(SUBMAKE) check BUILD=$(BUILD)/tsan SAN=thread

# Unit and simulation tests need neither the shared library nor other programs.
run-tests: $(if $(filter integration/% check_%,$(SELECTED)),lib examples $(PEER_BIN)) \
           $(filter $(SELECTED:%=$(BUILD)/test/%),$(TEST_BINS) $(REPLAY_BINS))
	@CC='$(CC)' CXX='$(CXX)' SAN='$(SAN)' test/run -j $(JOBS) -t $(LIMIT_S) $(BUILD) $(SELECTED)

# More stories than `check` tells, as many side by side as there are jobs.
.PHONY: sim run-sim
sim: deps
	$(SUBMAKE) run-sim
run-sim: $(BUILD)/test/sim/test_stories
	@JOBS=$(JOBS) $(if $(filter thread,$(SAN)),setarch -R) $<

.PHONY: museum
museum: deps
	@CC='$(CC)' BUILD='$(BUILD)' test/museum/show -j $(JOBS) $(SHOW)

FUZZ_S ?= 60
.PHONY: fuzz run-fuzz $(FUZZ_BINS:%=run-%)
fuzz: deps-dev
	$(SUBMAKE) run-fuzz BUILD=$(BUILD)/fuzz CC=clang SAN=fuzzer-no-link,address,undefined
run-fuzz: $(FUZZ_BINS:%=run-%)
# New inputs go to the first folder; the corpus among the sources is only read.
$(FUZZ_BINS:%=run-%): run-%: %
	@mkdir -p $*.corpus
	@echo '  FUZZ  $(*F) for $(FUZZ_S) s'
	@$* -max_total_time=$(FUZZ_S) -timeout=10 -artifact_prefix=$*- \
	    $*.corpus $(wildcard test/fuzz/corpus/$(patsubst fuzz_%,%,$(*F))) > $*.log 2>&1 || \
	    { tail -n 60 $*.log; exit 1; }
	@tail -n 1 $*.log

# --- Lint -----------------------------------------------------------------------------

TIDIED  := $(patsubst %.c,$(BUILD)/lint/%.tidied,$(LIB_C) $(EXAMPLE_C))
ALL_INC  = -Iinclude -Ilib -Itest -Iexamples $(LIB_CFLAGS) $(BLAS_CFLAGS)

.PHONY: lint run-lint format-check cppcheck format
lint: deps-dev
	$(SUBMAKE) run-lint
run-lint: format-check $(TIDIED) cppcheck

format-check:
	@echo '  FORMAT'
	@clang-format --dry-run -Werror $(ALL_C) $(HEADERS)

$(BUILD)/lint/%.tidied: %.c $(HEADERS) .clang-tidy
	@mkdir -p $(@D)
	@echo '  TIDY  $<'
	@clang-tidy --quiet $< -- -std=c11 -D_GNU_SOURCE $(ALL_INC) > $@.log 2>&1 || \
	    { cat $@.log; exit 1; }
	@touch $@

cppcheck:
	@echo '  CPPCHECK'
	@mkdir -p $(BUILD)/lint/cppcheck
	@cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability \
	    --inline-suppr --suppress=missingIncludeSystem --suppress=internalAstError \
	    --cppcheck-build-dir=$(BUILD)/lint/cppcheck \
	    -D_GNU_SOURCE -Iinclude -Ilib $(wildcard lib examples)

format:
	clang-format -i $(ALL_C) $(HEADERS)

# --- Documentation, installing, cleaning ----------------------------------------------

.PHONY: doc install clean help
doc:
	@command -v doxygen > /dev/null || { \
	    echo 'make doc needs Doxygen: apt, dnf and brew all call it doxygen' >&2; exit 1; }
	@mkdir -p $(BUILD)/doc
	@printf '%s\n' 'PROJECT_NAME=libcoord' 'PROJECT_NUMBER=$(VERSION)' 'INPUT=include' \
	    'RECURSIVE=YES' 'OUTPUT_DIRECTORY=$(BUILD)/doc' 'OPTIMIZE_OUTPUT_FOR_C=YES' \
	    'JAVADOC_AUTOBRIEF=YES' 'ALIASES="thread=@par Threads^^"' 'GENERATE_LATEX=NO' \
	    'MACRO_EXPANSION=YES' 'EXPAND_ONLY_PREDEF=YES' 'STRIP_FROM_INC_PATH=include' \
	    'PREDEFINED=COORD_API= COORD_MUST_USE= COORD_PRINTF(a,b)=' \
	    'HAVE_DOT=NO' 'QUIET=YES' 'WARN_IF_UNDOCUMENTED=NO' 'WARN_IF_INCOMPLETE_DOC=NO' | doxygen -
	@echo 'see $(BUILD)/doc/html/index.html'

# As written into the .pc file: relative to the prefix where it can be.
PC_LIBDIR = $(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))

$(BUILD)/libcoord.pc: pkgconfig/libcoord.pc.in Makefile FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(PC_LIBDIR)|' \
	    -e 's|@VERSION@|$(VERSION)|' -e 's|@PACKAGES@|$(LIB_PACKAGES)|' $< > $@

INSTALLED_BINS = $(filter-out $(addprefix $(BUILD)/examples/,$(EXAMPLE_TESTS) $(EXAMPLE_SHOWS)),$(EXAMPLE_BINS))

install: all $(BUILD)/libcoord.pc
	install -d $(DESTDIR)$(PREFIX)/include/coord $(DESTDIR)$(LIBDIR)/pkgconfig \
	    $(DESTDIR)$(LIBDIR)/libcoord $(DESTDIR)$(PREFIX)/share/man/man3
	install -m 644 include/coord.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(PUBLIC_H) $(DESTDIR)$(PREFIX)/include/coord
	install -m 644 $(STATIC_LIB) $(DESTDIR)$(LIBDIR)
	install -m 755 $(SHARED_LIB) $(DESTDIR)$(LIBDIR)
	ln -sf libcoord.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libcoord.so
	install -m 644 $(BUILD)/libcoord.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	$(if $(INSTALLED_BINS),install -m 755 $(INSTALLED_BINS) $(DESTDIR)$(LIBDIR)/libcoord)
	$(if $(MAN_PAGES),install -m 644 $(MAN_PAGES) $(DESTDIR)$(PREFIX)/share/man/man3)
	@if [ -z '$(DESTDIR)' ] && [ -w /etc/ld.so.cache ]; then ldconfig; fi

clean:
	rm -rf $(BUILD)

help:
	@sed -n 's/^## \{0,1\}//p' Makefile
