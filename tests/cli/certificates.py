"""Certificates for the tests, made by Debian's certtool (gnutls-bin).

SPDX-License-Identifier: MIT
"""
import os
import subprocess


def make(folder, name, days=30, activation=None, expiration=None, tag=""):
    """A self-signed certificate that may sign; returns the paths of certificate and key."""
    base = os.path.join(folder, f"cert-{name}{tag}")
    with open(base + ".cfg", "w") as f:
        f.write(f'cn = "{name}"\ndns_name = "{name}"\nca\ntls_www_server\nsigning_key\n'
                f"cert_signing_key\nexpiration_days = {days}\n")
        if activation:
            f.write(f'activation_date = "{activation}"\nexpiration_date = "{expiration}"\n')
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["certtool", "--generate-privkey", "--key-type=ecdsa", "--curve=secp256r1",
                    "--outfile", base + ".key"], **quiet)
    subprocess.run(["certtool", "--generate-self-signed", "--template", base + ".cfg",
                    "--load-privkey", base + ".key", "--outfile", base + ".pem"], **quiet)
    return base + ".pem", base + ".key"
