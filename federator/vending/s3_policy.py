"""The session policy that limits AWS credentials to the objects of one table.

Source: AWS IAM, "Policy variables" (``${*}`` is a literal asterisk) and "AssumeRole" (the size of a session policy); Amazon S3,
"Actions, resources, and condition keys" (``s3:prefix`` limits listings).
"""

from __future__ import annotations

import json
import re
from typing import Any

from federator.connector import InvalidInput
from federator.vending.credentials import Access
from federator.vending.locations import TablePrefix

#: the maximum length of a session policy in characters, of AWS STS
MAX_POLICY_LENGTH = 2048
_READ_OBJECTS = ("s3:GetObject",)
_WRITE_OBJECTS = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:ListMultipartUploadParts", "s3:PutObject")


def build_session_policy(prefix: TablePrefix, access: Access, *, partition: str = "aws", kms_key: str | None = None) -> str:
    """Return the policy, as JSON, that allows to list and read the objects below a prefix, and to write them with ``WRITE``.

    Raise InvalidInput if it exceeds the limit of AWS.
    """
    actions = sorted((*_READ_OBJECTS, *(_WRITE_OBJECTS if access is Access.WRITE else ())))
    key, bucket = _escape(prefix.key), f"arn:{partition}:s3:::{prefix.bucket}"
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": actions, "Resource": f"{bucket}/{key}/*"},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {"StringLike": {"s3:prefix": f"{key}/*"}},
        },
    ]
    if kms_key is not None:
        uses = ["kms:Decrypt", *(["kms:GenerateDataKey"] if access is Access.WRITE else [])]
        statements.append({"Effect": "Allow", "Action": uses, "Resource": kms_key})
    # Non-ASCII characters are escaped, because STS accepts Latin-1 only.
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(policy) > MAX_POLICY_LENGTH:
        raise InvalidInput(
            f"no credentials are vended: the session policy for {prefix.bucket}/{prefix.key} has {len(policy)} characters",
            hint=f"AWS allows {MAX_POLICY_LENGTH}: use a shorter location",
        )
    return policy


def _escape(key: str) -> str:
    """Return a key as a literal text in a policy, without wildcards and variables."""
    return re.sub(r"\$(?=\{)|[*?]", lambda match: f"${{{match[0]}}}", key)
