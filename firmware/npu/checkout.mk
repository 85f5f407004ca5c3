# Sources of others, in folders of the user's. Make takes no spaces in the names of files, so each
# folder is reached through a link in the build folder.

# $(call checkout,VARIABLE,FOLDER,LINK,FILE,WHAT): make build/checkout/LINK of a folder below the one
# that VARIABLE names; stop unless FILE is in it.
comma := ,
quoted = '$(subst ','\'',$(1))'
checkout = $(if $(shell test -f $(call quoted,$($(1))/$(2)/$(4)) && echo yes),,$(error \
    $(1)=$($(1)) must name $(5): there is no $(patsubst ./%,%,$(2)/$(4)) in it))$(shell \
    mkdir -p $(BUILD)/checkout && ln -sfn "$$(cd $(call quoted,$($(1))/$(2)) && pwd)" \
    $(BUILD)/checkout/$(3))

ifneq ($(words $(BUILD)),1)
$(error BUILD=$(BUILD) must be a path without spaces)
endif
