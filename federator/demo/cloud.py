"""The demo's cloud: an IAM user who may use Glue but no bucket, a foreign bucket, and a partner's account.

moto serves all of it. It enforces the policies from the end of ``create_cloud`` on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federator.demo.tables import write_table

REGION = "us-east-1"
#: a role in a partner's account that may read its Glue
PARTNER_ROLE = "arn:aws:iam::210987654321:role/reader"
#: a table that only its owner can open
DENIED_LOCATION = "s3://payroll/salaries.lance"
#: a table behind an unreachable endpoint
PARTNER_LOCATION = "s3://prices/daily.lance"
#: the discard port, on which no server usually listens
UNREACHABLE_ENDPOINT = "http://127.0.0.1:9"

# Until moto enforces policies, it treats any key as the account owner's.
_OWNER = {"aws_access_key_id": "AKIAOWNER", "aws_secret_access_key": "of-the-demo"}


@dataclass(frozen=True, slots=True)
class User:
    """The credentials of the federator's IAM user."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


def create_cloud(url: str) -> User:
    """Create user, bucket and partner on the server at ``url``, and then enable the enforcement of policies."""
    import requests

    _client(url, "s3", _OWNER).create_bucket(Bucket="payroll")
    write_table(DENIED_LOCATION, rows=30, storage={"aws_endpoint": url, "aws_region": REGION, "allow_http": "true", **_OWNER})
    _create_partner(url)
    iam = _client(url, "iam", _OWNER)
    iam.create_user(UserName="federator")
    iam.put_user_policy(UserName="federator", PolicyName="glue", PolicyDocument=_policy("glue:*", "sts:AssumeRole"))
    key = iam.create_access_key(UserName="federator")["AccessKey"]
    # data: the number of further requests before moto enforces policies.
    requests.post(f"{url}/moto-api/reset-auth", data="0", timeout=30).raise_for_status()
    return User(key["AccessKeyId"], key["SecretAccessKey"])


def _create_partner(url: str) -> None:
    """Create the partner's role and the database ``market`` with a table."""
    credentials = _client(url, "sts", _OWNER).assume_role(RoleArn=PARTNER_ROLE, RoleSessionName="setup")["Credentials"]
    names = {
        "aws_access_key_id": "AccessKeyId",
        "aws_secret_access_key": "SecretAccessKey",
        "aws_session_token": "SessionToken",
    }
    owner = {name: credentials[key] for name, key in names.items()}
    iam, role = _client(url, "iam", owner), PARTNER_ROLE.rpartition("/")[2]
    anybody = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [anybody]}))
    iam.put_role_policy(RoleName=role, PolicyName="read", PolicyDocument=_policy("glue:Get*"))
    glue = _client(url, "glue", owner)
    glue.create_database(DatabaseInput={"Name": "market"})
    glue.create_table(
        DatabaseName="market",
        TableInput={
            "Name": "daily_prices", "TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "LANCE"},
            "StorageDescriptor": {"Location": PARTNER_LOCATION},
        },
    )  # fmt: skip


def _policy(*actions: str) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]})


def _client(url: str, service: str, credentials: Mapping[str, str]) -> Any:
    import boto3

    make: Any = boto3.client
    return make(service, region_name=REGION, endpoint_url=url, **credentials)
