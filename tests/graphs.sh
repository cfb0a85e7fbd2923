#!/bin/sh
# Random graphs, compiled and interpreted (tests/tools/graphs.c): the same few hundred each time. More: make graphs
# count=10000.
cd "$(dirname "$0")/.." || exit 1
exec "${TY_BUILD:-build/release}/tools/graphs" --count "${TY_GRAPHS:-200}"
