# Builds Citus for one PostgreSQL: unpacks the source $1 below $2, and leaves in $2/root a copy of the server of pg_config $3 with Citus inside.
# Nothing outside of $2 changes: PostgreSQL finds its files relative to its program, so a copied tree is a server of its own.
set -eu
mkdir "$2/source" "$2/root"
tar -xf "$1" -C "$2/source" --strip-components=1
cd "$2/source"
PG_CONFIG="$3" ./configure --without-libcurl
# No bitcode, as tests do not compile queries; little optimisation, as they wait for the compiler longer than for the server.
make -s -j"$(getconf _NPROCESSORS_ONLN)" with_llvm=no COPT='-O1 -g0 -U_FORTIFY_SOURCE'
make -s install-all with_llvm=no COPT='-O1 -g0 -U_FORTIFY_SOURCE' DESTDIR="$2/root"
for dir in "$("$3" --bindir)" "$("$3" --pkglibdir)" "$("$3" --sharedir)"; do
	mkdir -p "$2/root$dir"
	cp -R -n "$dir/." "$2/root$dir/"
done
rm -rf "$2/source" "$2/root$("$3" --pkglibdir)/bitcode"
