"""The bundles that come with the package: checksums of their certificates, each of which was issued by `undershoot certify`."""

VOUCHED: dict[str, str] = {
    "cube-2x2": "af7291f4b7da3a5f1b0528ce0a03758a140f6c92793921bc5d2d91ddfc18ce7c",
    "cube-2x2-label-free": "ee550fd64d3c4ba8f160a56cbd5716b87d1b819e653cc8736244091b1cc13d30",
    "cube-2x2-paper": "144fc10be3881b90e413fcc854548f5a45850e2df11c9167770864a62ce5140a",
    "cube-2x2-small": "440fb2826686b5efdb82f54f1b14d4643f08774cef5d67b5f84f3a4521b74778",
    "lights-out-3x3": "126bbddb2a9d0d24f98b7f594e5d9fdf8d4591297e70e74ff749a9f4abf16585",
    "lights-out-3x3-paper": "3ed55f21d95bd76320ced2321669d7f75d8644f518c08449252c5c34c4771136",
    "lights-out-5x5": "3610ca89f6732014de3fc7ff64986d7b9cfd062420eae32b0cb1403f0994449d",
    "lights-out-5x5-paper": "6b3e64e28840f4100d5f462f54875078f9908d5d65f6b1bcd456ca53a88846f7",
    "tiles-3x3": "23ddc197040641b4e67253fbf3d6eccfa182a4ed615b57f03f166791d7e2e32c",
    "tiles-3x3-label-free": "bc12ae3a23d8f092cd0aa3a28ca2e98f403249a34573d5a03e9a2e08d89551f6",
    "tiles-3x3-paper": "0b7f5f65c3af524d6924b74c6b51ef6ed926aaf65359f64ee71af63f75a4fbac",
    "tiles-3x3-small": "95e1daaa9909f8bd892c115d677d9fb6c1cc5005a59148c684e7b38ad6cc5a98",
    "tiles-4x4": "6c281b4367257eaee1da2b0521ba33d00ee6487c87b814bbba03497f927a619a",
    "tiles-5x5": "cfe460c943bf6f74fda6b65bf97184108854347e0a9715b6f1833c6a268e3ccc",
}
