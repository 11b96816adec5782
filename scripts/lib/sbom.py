# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials of a release, as SPDX 2.3 in JSON: every file of the package with its checksums, and for
each program the Debian packages that are in it or that it loads."""
import hashlib
import json
import platform
import time
from dataclasses import dataclass
from pathlib import Path

from debian_packages import DebianPackage, library_path, packages_of
from link_map import linked

_HOME = "https://github.com/1996fanrui/agents-sandbox"
_UNKNOWN = "NOASSERTION"


@dataclass(frozen=True)
class Components:
    """Of one program."""

    static: set[DebianPackage]
    headers: set[DebianPackage]
    dynamic: set[DebianPackage]

    def contained(self) -> set[DebianPackage]:
        return self.static | self.headers

    def all(self) -> set[DebianPackage]:
        return self.contained() | self.dynamic


def components_of(build: Path, program: str) -> Components:
    files = linked(build, program)
    libraries = [library_path(soname) for soname in files.dynamic]
    owners = packages_of([*files.static, *files.headers, *libraries])
    return Components(*({owners[path] for path in group} for group in (files.static, files.headers, libraries)))


def notices(components: dict[str, Components]) -> str:
    """The copyright file of every package that is in a program: their licences ask for it."""
    of_text: dict[str, list[DebianPackage]] = {}  # packages of one source often have the same
    for package in sorted({package for part in components.values() for package in part.contained()}):
        of_text.setdefault(package.copyright(), []).append(package)
    line = "=" * 100
    parts = ["The programs of agents-sandbox contain parts of these Debian packages. Each has its copyright file below.\n"]
    for text, packages in of_text.items():
        heads = []
        for package in packages:
            users = ", ".join(sorted(name for name, part in components.items() if package in part.contained()))
            heads.append(f"{package.name} {package.version}, in {users}\n")
        parts.append(f"{line}\n{''.join(heads)}{line}\n\n{text}")
    return "\n".join(parts)


def sbom(version: str, created: int, tree: Path, programs: dict[str, str], components: dict[str, Components]) -> str:
    """`programs`: the path in the tree of every program that has components."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    entries = {str(path.relative_to(tree)): _file(path, tree) for path in files}
    packages = sorted({package for part in components.values() for package in part.all()})
    verification = hashlib.sha1("".join(sorted(_sha1(entry) for entry in entries.values())).encode()).hexdigest()
    relationships = [_relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-agents-sandbox")]
    relationships += [_relation("SPDXRef-agents-sandbox", "CONTAINS", entry["SPDXID"]) for entry in entries.values()]
    for name, part in sorted(components.items()):
        program = entries[programs[name]]["SPDXID"]
        for package in sorted(part.contained()):
            how = "its archive is linked in" if package in part.static else "its headers are compiled in"
            relationships.append(_relation(program, "STATIC_LINK", _reference(package), how))
        relationships += [_relation(program, "DYNAMIC_LINK", _reference(package)) for package in sorted(part.dynamic)]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"agents-sandbox-{version}-linux-{platform.machine()}",
        # Unique, and the same for the same content.
        "documentNamespace": f"{_HOME}/spdx/{version}-{verification}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created)),
            "creators": ["Tool: agents-sandbox-scripts-package", "Organization: agents-sandbox"],
        },
        "packages": [_ours(version, verification), *(_component(package) for package in packages)],
        "files": list(entries.values()),
        "relationships": relationships,
    }
    return json.dumps(document, indent=2) + "\n"


def _ours(version: str, verification: str) -> dict:
    return {
        "SPDXID": "SPDXRef-agents-sandbox",
        "name": "agents-sandbox",
        "versionInfo": version,
        "supplier": "Organization: agents-sandbox",
        "downloadLocation": _HOME,
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": verification},
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": "Apache-2.0",
        "licenseInfoFromFiles": [_UNKNOWN],
        "copyrightText": _UNKNOWN,
        "primaryPackagePurpose": "APPLICATION",
    }


def _component(package: DebianPackage) -> dict:
    purl = f"pkg:deb/debian/{package.name}@{package.version}?arch={package.architecture}".replace("+", "%2B")
    return {
        "SPDXID": _reference(package),
        "name": package.name,
        "versionInfo": package.version,
        "supplier": "Organization: Debian",
        "downloadLocation": _UNKNOWN,
        "homepage": package.homepage or _UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": _UNKNOWN,
        "copyrightText": _UNKNOWN,
        "sourceInfo": f"built from the source package {package.source} {package.source_version}",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
        ],
    }


def _file(path: Path, tree: Path) -> dict:
    content, name = path.read_bytes(), str(path.relative_to(tree))
    return {
        "SPDXID": f"SPDXRef-File-{hashlib.sha256(name.encode()).hexdigest()[:16]}",
        "fileName": f"./{name}",
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": hashlib.sha1(content).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()},
        ],
        "licenseConcluded": _UNKNOWN,
        "licenseInfoInFiles": [_UNKNOWN],
        "copyrightText": _UNKNOWN,
    }


def _sha1(entry: dict) -> str:
    return entry["checksums"][0]["checksumValue"]


def _reference(package: DebianPackage) -> str:
    return f"SPDXRef-Debian-{package.name.replace('+', '-plus')}"


def _relation(element: str, kind: str, related: str, comment: str = "") -> dict:
    relation = {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}
    return relation | ({"comment": comment} if comment else {})
