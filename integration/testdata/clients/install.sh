#!/usr/bin/env bash
# Installs clients that are no packages of the distribution, at their pinned versions, where make clients looks: python, dbt, superset, java,
# rust, node.
set -euo pipefail
cd "$(dirname "$0")"
into=$(cd ../../.. && pwd)/.cache/clients
mkdir -p "$into"
case ${1-} in
  python | dbt | superset)
    python3 -m venv "$into/$1" && "$into/$1/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$1/requirements.txt" ;;
  java)
    mvn -q -B dependency:copy -Dartifact=org.postgresql:postgresql:42.7.14 -Dmdep.stripVersion=true -DoutputDirectory="$into/java" ;;
  rust) cargo build --quiet --release --locked --manifest-path rust/Cargo.toml --target-dir "$into/rust" ;;
  node) cp node/package*.json "$into" && npm ci --prefix "$into" --ignore-scripts --no-audit --no-fund --silent ;;
  *) echo "usage: $0 python|dbt|superset|java|rust|node" >&2; exit 2 ;;
esac
