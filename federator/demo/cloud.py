"""The demo's cloud: an IAM user who may use Glue and no bucket, a bucket that is somebody else's, a partner's account.

All of it is moto's, which enforces the policies from the end of ``furnish`` on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REGION = "us-east-1"
#: the account of a partner, and the role in it through which its Glue may be read
PARTNER_ROLE = "arn:aws:iam::210987654321:role/reader"
#: a table that its owner can open, and we cannot
LOCKED = "s3://payroll/salaries.lance"
#: a table behind an endpoint that nothing answers at
AWAY = "s3://prices/daily.lance"
#: a port at which nothing listens on any sane machine
NOWHERE = "http://127.0.0.1:9"

# moto takes any key for the account's owner until it enforces policies.
_OWNER = {"aws_access_key_id": "AKIAOWNER", "aws_secret_access_key": "of-the-demo"}


@dataclass(frozen=True, slots=True)
class User:
    """The credentials of the IAM user that the federator has."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


def furnish(url: str) -> User:
    """Makes user, bucket and partner on the server at ``url``, whose policies count from then on."""
    import requests

    from federator.demo.world import write_table

    _client(url, "s3", _OWNER).create_bucket(Bucket="payroll")
    write_table(LOCKED, rows=30, storage={"aws_endpoint": url, "aws_region": REGION, "allow_http": "true", **_OWNER})
    _partner(url)
    iam = _client(url, "iam", _OWNER)
    iam.create_user(UserName="federator")
    iam.put_user_policy(UserName="federator", PolicyName="glue", PolicyDocument=_policy("glue:*", "sts:AssumeRole"))
    key = iam.create_access_key(UserName="federator")["AccessKey"]
    # After so many more requests: none.
    requests.post(f"{url}/moto-api/reset-auth", data="0", timeout=30).raise_for_status()
    return User(key["AccessKeyId"], key["SecretAccessKey"])


def _partner(url: str) -> None:
    given = _client(url, "sts", _OWNER).assume_role(RoleArn=PARTNER_ROLE, RoleSessionName="setup")["Credentials"]
    names = {
        "aws_access_key_id": "AccessKeyId",
        "aws_secret_access_key": "SecretAccessKey",
        "aws_session_token": "SessionToken",
    }
    owner = {name: given[key] for name, key in names.items()}
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
            "StorageDescriptor": {"Location": AWAY},
        },
    )  # fmt: skip


def _policy(*actions: str) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]})


def _client(url: str, service: str, credentials: Mapping[str, str]) -> Any:
    import boto3

    make: Any = boto3.client
    return make(service, region_name=REGION, endpoint_url=url, **credentials)
