# Which folders a folder of src may include; "may include" is transitive. CMakeLists.txt links the
# folders' libraries by this table, tools/check_layers.py reads the #includes by it.
tilecast_layer(base)
tilecast_layer(accelerator base)
tilecast_layer(graph base)
tilecast_layer(ops graph)
tilecast_layer(passes ops)
tilecast_layer(importers ops)
tilecast_layer(devices graph)
tilecast_layer(collectives devices)
tilecast_layer(predict ops collectives)
tilecast_layer(request graph)
tilecast_layer(lower ops)
tilecast_layer(sim lower)
tilecast_layer(measurements predict)
tilecast_layer(train measurements)
tilecast_layer(memory graph)
tilecast_layer(report request)
tilecast_layer(api importers passes lower predict sim memory request accelerator)
tilecast_layer(many api report)
tilecast_layer(plan api)
tilecast_layer(evaluate api measurements)
tilecast_layer(cli evaluate plan report train)

# The folders that may include the headers of include/tilecast; all may include tilecast/error.h
# and tilecast/choices.h.
tilecast_sees_facade(request api many plan evaluate train report cli)
