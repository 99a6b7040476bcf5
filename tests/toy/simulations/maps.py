"""Maps of the toy theory."""

from simulations.maps import Map

MAPS = (Map("product", "Where the product ends", "$a b$", lambda _, data: data["product"]),)


def maps_of(_):
    return MAPS
