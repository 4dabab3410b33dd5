"""Where the configuration file is. Without imports, since every start of the command line needs it."""

DEFAULT_FILE = "federator.toml"
#: environment variable with the path of the file
CONFIG_VARIABLE = "FEDERATOR_CONFIG"
